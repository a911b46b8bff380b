"""Edits of a JSON text that leave the rest as it is written: comments, layout, line endings."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple, Self

from holdfast.errors import Conflict

BOM = "\ufeff"  # some editors on Windows begin a text with it
# White space and comments, which some clients allow.
_SPACE = re.compile(r"(?:[ \t\r\n]++|//[^\r\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*+"')
_PLAIN = re.compile(r"-?[0-9][0-9.eE+-]*+|true|false|null")
# A comment at the end of the line of a value.
_REMARK = re.compile(r"[ \t]*+(?://[^\r\n]*+|/\*(?:[^*\r\n]|\*(?!/))*+\*/[ \t]*+(?=\r?\n))")
Step = str | int


class Value(NamedTuple):
    """A value in a text: its span, the decoded value, and for objects and lists their parts."""

    start: int
    end: int
    plain: object
    parts: tuple[Part, ...] = ()


class Part(NamedTuple):
    """A part of an object or a list: its name ("" in a list), where it begins, and its value."""

    name: str
    at: int
    value: Value


class JsonText:
    """A JSON text, which may have comments and commas after the last part, and what it says.

    Raises:
        Conflict: it is no JSON, even so.

    """

    def __init__(self, text: str) -> None:
        self._mark = BOM if text.startswith(BOM) else ""
        self.body = text.removeprefix(BOM)
        self._line = "\r\n" if "\r\n" in self.body else "\n"
        try:
            self.root = self._value(self._skip(0))
            if self._skip(self.root.end) != len(self.body):
                raise ValueError
        except (ValueError, IndexError, RecursionError) as error:
            raise Conflict(
                "The configuration is not JSON.", "Mend it, or add the entries by hand."
            ) from error

    @property
    def text(self) -> str:
        """The text as it is now."""
        return self._mark + self.body

    def find(self, path: Sequence[Step]) -> Value | None:
        """Return the value at a path of names and numbers; of several of a name the last, as parsers do.

        Raises:
            Conflict: something above it is no object.

        """
        value = self.root
        for step in path:
            if isinstance(step, int):
                value = value.parts[step].value
                continue
            if not isinstance(value.plain, dict):
                what = f"What should have the member {step!r} in the configuration is no object."
                raise Conflict(what, "Mend it, or add the entries by hand.")
            values = [part.value for part in value.parts if part.name == step]
            if not values:
                return None
            value = values[-1]
        return value

    def put(self, path: Sequence[Step], new: object) -> Self:
        """Return the text with a value at a path, in place of what is there; what is above it is made.

        Raises:
            Conflict: something above it is no object.

        """
        value = self.find(path)
        if value is not None:
            return self._replace(value, new, path)
        *above, name = path
        parent = self.find(above)
        if parent is None:
            return self.put(above, {name: new})
        if not isinstance(parent.plain, dict):
            self.find(path)
        return self._add(parent, f"{json.dumps(name)}: ", new)

    def append(self, path: Sequence[Step], new: object) -> Self:
        """Return the text with one more value in the list at a path, which is made if it is not there.

        Raises:
            Conflict: there is something else.

        """
        value = self.find(path)
        if value is None:
            return self.put(path, [new])
        if not isinstance(value.plain, list):
            todo = "Mend it, or add the entries by hand."
            raise Conflict(f"The member {path[-1]!r} of the configuration is no list.", todo)
        return self._add(value, "", new)

    def without(self, path: Sequence[Step]) -> Self:
        """Return the text without the value at a path, and with its name and comma."""
        *above, step = path
        parent = self.find(above) or self.root
        names = [part.name for part in parent.parts]
        number = step if isinstance(step, int) else len(names) - 1 - names[::-1].index(step)
        part = parent.parts[number]
        if number + 1 < len(parent.parts):
            comma = self._comma(part.value.end)
            return self._cut((part.at, len(self.body) - len(self.body[comma:].lstrip(" \t\r\n"))))
        begin = parent.start + 1 if number == 0 else self._before(part.at)
        comma = self._comma(part.value.end)
        if number == 0:
            inside = self.body[begin : part.at] + self.body[comma : parent.end - 1]
            return self._cut(
                (begin, parent.end - 1) if not inside.strip() else (self._before(part.at), comma)
            )
        if comma > part.value.end:
            return self._cut((begin, comma))
        previous = self._comma(parent.parts[number - 1].value.end)
        return self._cut((previous - 1, previous), (begin, part.value.end))

    def _replace(self, value: Value, new: object, path: Sequence[Step]) -> Self:
        if value.plain == new:
            return self
        parent = self.find(path[:-1]) or self.root
        part = next(part for part in parent.parts if part.value.start == value.start)
        written = self._layout(new, part.at) if self._own_line(part.at) else json.dumps(new)
        return self._edit((value.start, value.end, written))

    def _add(self, parent: Value, label: str, new: object) -> Self:
        """Return the text with one more part in an object or a list, in its layout."""
        if not parent.parts:
            outer = self._margin(parent.start)
            margin = outer + self._indent()
            written = f"\n{margin}{label}{pretty(new, self._indent(), margin)}\n{outer}"
            inside = self.body[parent.start + 1 : parent.end - 1]
            # Comments stay before it.
            return self._edit(
                (parent.start + 1, parent.end - 1, (inside.rstrip() if inside.strip() else "") + written)
            )
        last = parent.parts[-1]
        comma = self._comma(last.value.end)
        had_comma = comma > last.value.end
        if not self._own_line(last.at):
            return self._edit((last.value.end, last.value.end, f", {label}{json.dumps(new)}"))
        remark = _REMARK.match(self.body, comma)
        place = remark.end() if remark else comma
        written = f"\n{self._margin(last.at)}{label}{self._layout(new, last.at)}{',' * had_comma}"
        if had_comma or place == comma:
            return self._edit((place, place, ("" if had_comma else ",") + written))
        return self._edit((place, place, written), (comma, comma, ","))

    def _edit(self, *edits: tuple[int, int, str]) -> Self:
        """Return the text after edits, the last one in the text first."""
        body = self.body
        for start, end, new in edits:
            body = body[:start] + new.replace("\n", self._line) + body[end:]
        return type(self)(self._mark + body)

    def _cut(self, *spans: tuple[int, int]) -> Self:
        return self._edit(*((start, end, "") for start, end in reversed(spans)))

    def _layout(self, new: object, at: int) -> str:
        return pretty(new, self._indent(), self._margin(at))

    def _indent(self) -> str:
        """Return the indent of the text, two spaces if it has none."""
        at = self.root.parts[0].at if self.root.parts else 0
        return (self._margin(at) if self.root.parts and self._own_line(at) else "") or "  "

    def _own_line(self, at: int) -> bool:
        return not self.body[self.body.rfind("\n", 0, at) + 1 : at].strip() and "\n" in self.body[:at]

    def _margin(self, at: int) -> str:
        """Return the white space at the beginning of the line of a position."""
        line = self.body[self.body.rfind("\n", 0, at) + 1 : at]
        return line[: len(line) - len(line.lstrip())]

    def _before(self, at: int) -> int:
        """Return the start of the white space before a position."""
        return len(self.body[:at].rstrip(" \t\r\n"))

    def _comma(self, at: int) -> int:
        """Return the position after the comma that follows a value, or its end if none does."""
        after = self._skip(at)
        return after + 1 if self.body[after : after + 1] == "," else at

    def _skip(self, at: int) -> int:
        match = _SPACE.match(self.body, at)
        return match.end() if match else at

    def _value(self, at: int) -> Value:
        """Read the value at a position.

        Raises:
            ValueError: there is none.

        """
        if self.body[at] in "{[":
            return self._whole(at)
        match = (_STRING if self.body[at] == '"' else _PLAIN).match(self.body, at)
        if match is None:
            raise ValueError(at)
        return Value(at, match.end(), json.loads(match[0]))

    def _whole(self, start: int) -> Value:
        is_object = self.body[start] == "{"
        end = "}" if is_object else "]"
        parts: list[Part] = []
        at = self._skip(start + 1)
        while self.body[at] != end:
            begin, name = at, ""
            if is_object:
                label = self._value(at)
                if not isinstance(label.plain, str) or self.body[colon := self._skip(label.end)] != ":":
                    raise ValueError(at)
                name, at = label.plain, self._skip(colon + 1)
            value = self._value(at)
            parts.append(Part(name, begin, value))
            at = self._skip(value.end)
            if self.body[at] == ",":
                at = self._skip(at + 1)
            elif self.body[at] != end:
                raise ValueError(at)
        values = [part.value.plain for part in parts]
        plain = dict(zip((part.name for part in parts), values, strict=True)) if is_object else values
        return Value(start, at + 1, plain, tuple(parts))


def pretty(value: object, indent: str = "  ", margin: str = "") -> str:
    """Return a value as text, its lines after the first behind a margin."""
    return json.dumps(value, indent=indent).replace("\n", f"\n{margin}")
