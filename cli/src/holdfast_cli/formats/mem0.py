"""mem0: what `get_all` and exports give, and its `history.db`."""

from collections.abc import Iterator

from holdfast.port import formats, texts
from holdfast_cli.formats.files import File, values
from holdfast_cli.formats.foreign_sqlite import open_database
from holdfast_cli.formats.import_items import ImportedChat, ImportedRecord, Item, Owner, Skip, item_of
from holdfast_cli.formats.json_values import Json, dict_of, list_of, stable_id, text_of

_LISTS = ("results", "memories")
_NO_META = {"id", "memory", "data", "hash", "score", "text_lemmatized", "categories", "metadata", "event"}
_HISTORY = ("memory_id", "new_memory", "event", "created_at", "updated_at")
MARK = ("history", *_HISTORY)
_MESSAGES = ("id", "session_scope", "role", "content", "name", "created_at")
_NO_OWNER = "a memory whose user the history does not name: import an export"


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


def read_history(file: File) -> Iterator[Item]:
    """Yield the memories of a history after its last event, and the last messages of each session.

    The history does not say whose a memory is: unless all its sessions are of one user, memories are left
    out. An export has them too.
    """
    with open_database(file) as database:
        scopes: dict[str, dict[str, str]] = {}
        if database.has("messages", *_MESSAGES):
            rows = database.rows("messages", ["session_scope"])
            scopes = {scope: _scope(scope) for (scope,) in rows if isinstance(scope, str)}
        users = {scope.get("user_id", "") for scope in scopes.values()}
        last: dict[str, tuple[int, Json]] = {}
        for place, row in enumerate(database.rows("history", _HISTORY, order=["rowid"]), 1):
            entry: Json = dict(zip(_HISTORY, row, strict=True))
            last[str(entry["memory_id"])] = (place, entry)
        for identity, (place, entry) in last.items():
            if entry["event"] == "DELETE":
                yield Skip(place, "a memory that was deleted in mem0")
            elif len(users) != 1:
                yield Skip(place, _NO_OWNER)
            else:
                memory = {**entry, "id": identity, "memory": entry["new_memory"]}
                yield _record(place, memory, Owner(min(users), is_only=True))
        if not scopes:
            return
        for place, row in enumerate(database.rows("messages", _MESSAGES, order=["created_at", "rowid"]), 1):
            fields: dict[str, object] = dict(zip(_MESSAGES, row, strict=True))
            scope = scopes.get(text_of(fields.pop("session_scope")), {})
            name = scope.get("run_id") or scope.get("agent_id") or scope.get("user_id") or "session"
            owner = Owner(scope.get("user_id", ""), len(users) == 1)
            yield item_of(ImportedChat(f"mem0:{name}", owner=owner), place, formats.parse, fields)


def _scope(text: str) -> dict[str, str]:
    """Return the names of a session, as in `agent_id=coach&user_id=ada`."""
    pairs = (part.partition("=") for part in text.split("&"))
    escaped = {key: value.replace("%26", "&").replace("%3D", "=") for key, _, value in pairs}
    return {key: value.replace("%25", "%") for key, value in escaped.items()}
