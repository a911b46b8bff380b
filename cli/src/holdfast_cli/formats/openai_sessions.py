"""OpenAI Agents SDK: the SQLite file of its sessions, `SQLiteSession` and `AdvancedSQLiteSession`."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from holdfast.errors import InvalidInput
from holdfast.port import formats
from holdfast.types import Message
from holdfast_cli.formats.files import File, object_in
from holdfast_cli.formats.foreign_sqlite import open_database
from holdfast_cli.formats.import_items import ImportedChat, Item, Skip, item_of
from holdfast_cli.formats.json_values import stable_id, text_of

_ITEMS, _COLUMNS = "agent_messages", ("id", "session_id", "message_data", "created_at")
MARK = (_ITEMS, *_COLUMNS)
_BRANCHES, _PLACED = "message_structure", ("message_id", "branch_id")
_MAIN = "main"


def read(file: File) -> Iterator[Item]:
    """Yield the items of all sessions, each a chat; a branch is a chat of its own, `<session>/<branch>`.

    An item of a kind that is no message, such as a search that the provider ran, is shown by its kind.
    """
    with open_database(file) as database:
        branches: dict[object, str] = {}
        if database.has(_BRANCHES, *_PLACED):
            for identity, branch in database.rows(_BRANCHES, _PLACED, order=["rowid"]):
                # A branch repeats what it has in common with the one that it left.
                branches.setdefault(identity, text_of(branch) or _MAIN)
        for identity, session, data, created in database.rows(_ITEMS, _COLUMNS, order=["id"]):
            line = identity if isinstance(identity, int) else 0
            item, name = object_in(data), text_of(session)
            if isinstance(item, str):
                yield Skip(line, item, problem=True)
                continue
            branch = branches.get(identity, _MAIN)
            chat = ImportedChat(name if branch == _MAIN else f"{name}/{branch}")
            yield item_of(chat, line, _message, item, line, created)


def _message(item: Mapping[str, object], line: int, created: object) -> Message:
    kind = text_of(item.get("type"))
    try:
        message = formats.parse(item)
    except InvalidInput:
        if "role" in item or not kind:
            raise
        message = Message("assistant", f"[{kind}]", raw=item)
    at = message.at or formats.read_time(created if isinstance(created, str) else None)
    return replace(message, id=stable_id(line, item), at=at)
