"""The commands about spaces: projects, and grants with add, revoke, move and copy."""

from datetime import datetime
from typing import NamedTuple

from holdfast import Memory
from holdfast.types import Record
from holdfast.types.grants import Rights
from holdfast_cli.commands.options import Options
from holdfast_cli.commands.render.screen import Part, plain, when


class _Project(NamedTuple):
    project: str
    root: str | None
    chats: int
    messages: int
    newest: datetime | None


def projects(options: Options, *, limit: int | None = None) -> None:
    """List the projects of the user of which something is stored, and the folders of coding agents.

    For example: holdfast projects --user ada
    """
    # Only for those who have projects.
    from holdfast_cli.hooks.session_state import roots

    folders = roots()
    with options.open() as memory:
        names, more = options.page(memory.grants.projects(), limit)
        found = [_project(memory.scoped(project=name), name, folders.get(name)) for name in names]
    screen = options.answer({"projects": [plain(one._asdict()) for one in found], "more": more})
    columns: dict[str, list[Part]] = {
        "project": [one.project for one in found],
        "chats": [f"{one.chats:,}" for one in found],
        "messages": [f"{one.messages:,}" for one in found],
        "newest": [when(one.newest) for one in found],
        "folder": [one.root or "–" for one in found],
    }
    if found:
        screen.table(columns)
    else:
        screen.say(f"No projects{options.whose()}.")
    screen.say_more(more)


def _project(memory: Memory, name: str, root: str | None) -> _Project:
    chats = memory.chats(archived=None)
    newest = max((chat.newest for chat in chats), default=None)
    return _Project(name, root, len(chats), sum(chat.messages for chat in chats), newest)


def grants(options: Options, *, limit: int | None = None) -> None:
    """List who may read or write the spaces of others, or change that: add, revoke, move, copy.

    For example: holdfast grants --user ada
    """
    with options.open(admin=not options.user) as memory:
        found, more = options.page(memory.grants, limit)
    screen = options.answer({"grants": plain(found), "more": more})
    columns: dict[str, list[Part]] = {
        "space": [one.space for one in found],
        "to": [one.to for one in found],
        "rights": [one.rights for one in found],
        "by": [one.by or "the application" for one in found],
        "since": [when(one.at) for one in found],
    }
    if found:
        screen.table(columns)
    else:
        screen.say(f"Nothing is granted{options.whose()}.")
    screen.say_more(more)


def add(options: Options, *, space: str, grantee: str, rights: Rights = "read") -> None:
    """Grant a user a right on a space.

    For example: holdfast grants add project:shop --to user:bob --user ada
    """
    with options.open() as memory:
        granted = memory.grants.add(space, to=grantee, rights=rights, by="user")
    screen = options.answer({"grant": plain(granted)})
    screen.say(f"{granted.to} may {granted.rights} {granted.space}.")


def revoke(options: Options, *, space: str, grantee: str) -> None:
    """Take back what a user may do with a space.

    For example: holdfast grants revoke project:shop --to user:bob --user ada
    """
    with options.open() as memory:
        done = memory.grants.revoke(space, to=grantee, by="user")
    screen = options.answer({"revoked": done})
    screen.say(f"{grantee} may not read {space} any more." if done else f"{grantee} had no right on {space}.")


def move(options: Options, *, record: str, to: str) -> None:
    """Move a record to another space; undo takes it back.

    For example: holdfast grants move rec_00000001615749fe user --user ada --project shop
    """
    with options.open() as memory:
        _report(options, memory.grants.move(record, to, by="user"), "now")


def copy(options: Options, *, record: str, to: str) -> None:
    """Copy a record to another space.

    For example: holdfast grants copy rec_00000001615749fe team:core --user ada
    """
    with options.open() as memory:
        _report(options, memory.grants.copy(record, to, by="user"), "as well")


def _report(options: Options, record: Record, how: str) -> None:
    options.answer({"record": plain(record)}).say(f"It is in {record.space} {how}, as {record.id}.")
