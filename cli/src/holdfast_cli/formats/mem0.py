"""mem0: what `get_all` and exports give."""

from collections.abc import Iterator

from holdfast.port import texts
from holdfast_cli.formats.files import File, values
from holdfast_cli.formats.import_items import ImportedRecord, Item, Owner, Skip
from holdfast_cli.formats.json_values import Json, dict_of, list_of, stable_id, text_of

_LISTS = ("results", "memories")
_NO_META = {"id", "memory", "data", "hash", "score", "text_lemmatized", "categories", "metadata", "event"}


def is_memory(value: Json) -> bool:
    """Return whether an object is a memory, or a list of them as `get_all` returns it."""
    entries = [dict_of(entry) for key in _LISTS for entry in list_of(value.get(key))[:1]]
    return any(_is_memory(entry) for entry in (value, *entries))


def _is_memory(value: Json) -> bool:
    return isinstance(value.get("memory"), str) and ("id" in value or "user_id" in value)


def read(file: File) -> Iterator[Item]:
    """Yield the memories of a JSON file as facts. Of a file of several users, each names whose it is."""
    users = {_user(entry[1]) for entry in _entries(file) if not isinstance(entry, Skip)}
    for entry in _entries(file):
        yield entry if isinstance(entry, Skip) else _record(*entry, Owner(_user(entry[1]), len(users) == 1))


def _entries(file: File) -> Iterator[tuple[int, Json] | Skip]:
    for value in values(file):
        if isinstance(value, Skip):
            yield value
            continue
        entry = dict_of(value[1])
        rows = [row for key in _LISTS for row in list_of(entry.get(key))]
        for place, row in enumerate(rows, 1) if rows else [value]:
            memory = dict_of(row)
            yield (place, memory) if _is_memory(memory) else Skip(place, "no memory of mem0", problem=True)


def _user(entry: Json) -> str:
    return text_of(entry.get("user_id"))


def _record(line: int, entry: Json, owner: Owner) -> ImportedRecord:
    text, identity = text_of(entry.get("memory")), entry.get("id")
    beside = {**dict_of(entry.get("metadata")), **entry}
    meta = {
        key: value
        for key, value in beside.items()
        if key not in _NO_META and isinstance(value, str | int | float) and value != ""
    }
    tags = [tag for tag in list_of(entry.get("categories")) if isinstance(tag, str)]
    source = f"mem0:{texts.clean(str(identity)) if identity else stable_id(0, [owner.user, text])}"
    return ImportedRecord(line, {"text": text, "source": source, "meta": meta, "tags": tags}, owner=owner)
