"""Comments in Markdown that structure it: each on a line of its own, with JSON that cannot end it."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from holdfast_cli.formats.files import MAX_LINE, File, object_in


class Block(NamedTuple):
    """A comment, and the lines below it up to the next one; `fields` is text that says what is wrong."""

    kind: str
    line: int
    fields: dict[str, object] | str
    lines: list[str]


class Marks:
    """The comments of a format, by the words that they begin with.

    Those of `headed` stand below a heading and an empty line, which belong to no text. `inner` are comments
    within the text of others.
    """

    def __init__(self, *plain: str, headed: Sequence[str] = (), inner: Sequence[str] = ()) -> None:
        self._headed = headed
        self._mark = re.compile(rf"<!-- ({'|'.join((*plain, *headed))})(?: (\{{.*\}}))? -->")
        names = "|".join((*plain, *headed, *inner))
        self._like = re.compile(rf"^\\*<!-- (?:{names})\b", re.MULTILINE)
        self._escaped = re.compile(rf"^\\(\\*<!-- (?:{names})\b)", re.MULTILINE)

    def escape(self, text: str) -> str:
        """Return a text with a backslash before each line that looks like one of the comments."""
        return self._like.sub(r"\\\g<0>", text)

    def unescape(self, text: str) -> str:
        """Return the text that was escaped."""
        return self._escaped.sub(r"\1", text)

    def blocks(self, file: File) -> Iterator[Block]:
        """Yield the comments of a file with the lines below them; what is above the first is passed over."""
        block: Block | None = None
        ending = "\n"
        with file.open() as stream:
            for place, data in enumerate(iter(lambda: stream.readline(MAX_LINE), b""), 1):
                # Git and editors may have changed all ends of lines.
                ending = "\r\n" if place == 1 and data.endswith(b"\r\n") else ending
                line = data.decode().removesuffix(ending)
                if mark := self._mark.fullmatch(line.rstrip()):
                    if block:
                        if mark[1] in self._headed and block.lines and block.lines[-1].startswith("#"):
                            del block.lines[-2:]
                        yield block
                    block = Block(mark[1], place, object_in(mark[2] or "{}"), [])
                elif block:
                    block.lines.append(line)
        if block:
            yield block


def comment(kind: str, fields: Mapping[str, object]) -> str:
    """Return a comment with JSON in it, which it cannot end early."""
    text = json.dumps(fields).replace("--", "-\\u002d")
    return f"<!-- {kind} {text} -->"
