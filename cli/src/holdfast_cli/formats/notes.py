"""Notes in Markdown as records: those of basic-memory, with observations and relations, and plain ones.

Of the front matter, names with a text or a list of texts are read. That is what notes have; whatever else
YAML knows stays as its text and is counted.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from holdfast.port.handles import NewRecord
from holdfast.port.texts import clean
from holdfast_cli.formats.files import File
from holdfast_cli.formats.import_items import ImportedRecord, Item, Skip
from holdfast_cli.formats.json_values import hash_of, list_of, text_of

_LARGEST = 16 << 20  # bytes of one note
_LONGEST_HEAD = 500  # lines of front matter
_PART = 8_000  # characters of a section in one record
_LABEL = 60  # characters of a tag or a category
_MOST_TAGS = 50
_FIELD = re.compile(r"([A-Za-z_][\w .-]{0,99}):(?:[ \t]+(.*))?")
_LISTED = re.compile(r"[ \t]*-[ \t]+(.*)")
_IN_LIST = re.compile(r"[ \t]*(?:\"[^\"]*\"|'[^']*'|[^,]+)")
_NOT_PLAIN = tuple("{&*!|>@%`")
_HEADING = re.compile(r"(#{1,6})[ \t]+(.*)")
_FENCE = re.compile(r"[ \t]{0,3}(`{3,}|~{3,})")
_OBSERVATION = re.compile(rf"[ \t]*[-*] \[([^\[\]()\n]{{1,{_LABEL}}})\] (.+)")
_RELATION = re.compile(r"[ \t]*[-*] ([^\[\]\n]{0,80})\[\[([^\[\]\n]{1,200})\]\](.*)")
_TAG = re.compile(rf"(?:^|(?<=\s))#([^\s#()\[\],]{{1,{_LABEL}}})")
# A file that a note shows, as Obsidian and Markdown write it, and what such lines have besides.
_TARGET = r"\((?:[^()\n]{0,1000}\([^()\n]{0,1000}\))?[^()\n]{0,1000}\)"
_EMBED = re.compile(rf"!\[\[[^\[\]\n]{{1,500}}\]\]|\[?!\[[^\[\]\n]{{0,500}}\]{_TARGET}(?:\]{_TARGET})?")
_AROUND = re.compile(
    r"^[ \t>*+-]*\d{1,9}[.)](?=\s)|(?<=[*+.)-] )\[\w\]|\[!\w+\]|[\s!-/:-@\[-`{-~]", re.MULTILINE
)
_SHOWN = "a file that is shown, without words"
# What a box of a list of tasks has.
_TASKS = {"", "x", "X", "-", "/", ">", "!", "?"}
_ODD = "front matter that is neither a text nor a list, kept as its text"


def is_note(text: str) -> bool:
    """Return whether a text that begins so is a note of basic-memory, by its front matter."""
    fields, _, end = _front_matter([line.rstrip("\r") for line in text.split("\n")])
    return bool(end and fields.get("permalink") and (fields.get("title") or fields.get("type")))


@dataclass(slots=True)
class _Note:
    """The fields that all records of a note share, and the number of records of each place in it."""

    name: str
    title: str
    meta: dict[str, object]
    tags: tuple[str, ...]
    places: Counter[str] = field(default_factory=Counter)

    def record(self, line: int, kind: str, place: str, text: str, **more: object) -> ImportedRecord:
        """Return a record that is known again by its place: the n-th of a heading, or of a category."""
        self.places[place] += 1
        source = f"notes:{self.name[:200]}#{hash_of([place, self.places[place]], 8)}"
        tags = [*self.tags, *_TAG.findall(text)]
        meta = {**self.meta, **{key: value for key, value in more.items() if key != "category"}}
        new: NewRecord = {"text": text, "kind": kind, "source": source, "meta": meta}
        new |= {"tags": tuple(dict.fromkeys(tags))[:_MOST_TAGS], "category": text_of(more.get("category"))}
        return ImportedRecord(line, new)


def read(file: File) -> Iterator[Item]:
    """Yield the records of a note.

    An observation, `- [category] text #tag`, and a relation, `- relation [[Target]]`, are facts. What else
    stands below a heading is a finding, in parts of 8,000 characters if it is long.
    """
    with file.open() as stream:
        data = stream.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        yield Skip(0, f"larger than {_LARGEST >> 20} MiB", problem=True)
        return
    text = clean(data.decode("utf-8-sig"))
    lines = text.replace("\r\n", "\n").split("\n")
    fields, odd, start = _front_matter(lines)
    yield from (Skip(line, _ODD) for line in odd)
    headings = (match[2] for line in lines[start:] if (match := _HEADING.fullmatch(line)))
    name = text_of(fields.pop("title", "")) or next(headings, "").strip(" #\t")
    title = " ".join(name.split()) or file.name.rpartition("/")[2]
    tags = tuple(tag.lstrip("#") for tag in _tags(fields.pop("tags", "")) if 0 < len(tag) <= _LABEL)
    note = _Note(text_of(fields.get("permalink")) or file.name, title, {"note": title, **fields}, tags)
    yield from _records(note, lines, start)


def _records(note: _Note, lines: Sequence[str], start: int) -> Iterator[Item]:
    path: list[tuple[int, str]] = []
    body: list[str] = []
    fence, first = "", start
    for number, line in enumerate(lines[start:], start + 1):
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        heading = None if fence else _HEADING.fullmatch(line)
        if heading:
            yield from _section(note, first, path, body)
            level, name = len(heading[1]), heading[2].strip(" #\t")
            path = [*((depth, parent) for depth, parent in path if depth < level), (level, name)]
            body, first = [], number
        elif not fence and (match := _OBSERVATION.fullmatch(line)) and match[1].strip() not in _TASKS:
            category = match[1].strip()
            text = f"{note.title}: {match[2].strip()}"
            fact = note.record(number, "fact", f"[{category}]", text, category=category)
            yield Skip(number, _SHOWN) if _is_shown(match[2]) else fact
        elif not fence and (link := _RELATION.fullmatch(line)) and not link[1].endswith("!"):
            relation, target = link[1].strip() or "relates_to", link[2].strip()
            text = f"{note.title}: {relation} {target}{link[3].rstrip()}"
            where = f"[[{relation}]] {target}"
            yield note.record(
                number, "fact", where, text, category="relation", relation=relation, target=target
            )
        else:
            body.append(line)
    yield from _section(note, first, path, body)


def _section(note: _Note, line: int, path: Sequence[tuple[int, str]], body: Sequence[str]) -> Iterator[Item]:
    names = [name for _, name in path if name]
    heading = " › ".join(names if names[:1] == [note.title] else [note.title, *names])
    for part in parts_of_text("\n".join(body).strip()):
        if _is_shown(part):
            yield Skip(line, _SHOWN)
        else:
            yield note.record(line, "finding", heading, f"{heading}\n\n{part}")


def _is_shown(text: str) -> bool:
    """Return whether a text has files that it shows, and no words."""
    rest, files = _EMBED.subn("", text)
    return files > 0 and not _AROUND.sub("", rest)


def parts_of_text(text: str) -> Iterator[str]:
    """Yield a text in parts, which end at an empty line where there is one in the second half."""
    at = 0
    while at < len(text):
        end = len(text) if len(text) - at <= _PART else text.rfind("\n\n", at + _PART // 2, at + _PART)
        end = end if end > at else at + _PART
        if part := text[at:end].strip():
            yield part
        at = end


def _front_matter(lines: Sequence[str]) -> tuple[dict[str, object], list[int], int]:
    """Return the fields, the lines that are kept as text, and where the note itself begins."""
    ends = [n for n, line in enumerate(lines[:_LONGEST_HEAD]) if line.rstrip() in ("---", "...")]
    if ends[:1] != [0] or len(ends) < 2:
        return {}, [], 0
    fields, odd, key = dict[str, object](), list[int](), ""
    for number, line in enumerate(lines[1 : ends[1]], 2):
        match, item = _FIELD.fullmatch(line.rstrip()), _LISTED.fullmatch(line.rstrip())
        if not line.strip() or line.startswith("#"):
            continue
        if match:
            key, text = match[1], (match[2] or "").strip()
            fields[key] = _value(text)
            odd += [number] if text.startswith(_NOT_PLAIN) else []
        elif item and key and (fields[key] == "" or isinstance(fields[key], list)):
            fields[key] = [*list_of(fields[key]), _scalar(item[1])]
        else:
            odd.append(number)
            fields[key or "front matter"] = f"{fields.get(key or 'front matter', '')}\n{line}".strip()
    return fields, odd, ends[1] + 1


def _value(text: str) -> str | list[str]:
    if text.startswith("[") and text.endswith("]"):
        return [scalar for match in _IN_LIST.findall(text[1:-1]) if (scalar := _scalar(match))]
    return _scalar(text)


def _scalar(text: str) -> str:
    text = text.strip()
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if is_quoted else text


def _tags(tags: object) -> list[str]:
    return re.split(r"[,\s]+", tags) if isinstance(tags, str) else [text_of(tag) for tag in list_of(tags)]
