"""The commands about spaces: projects, and grants with add, revoke, move and copy."""

from typing import Any

from holdfast import Memory
from holdfast.types import Record
from holdfast.types.grants import Rights
from holdfast_cli.commands.options import Options
from holdfast_cli.commands.render.screen import Part, plain, when


def projects(options: Options, *, limit: int | None = None) -> None:
    """List the projects of the user of which something is stored, and the folders of coding agents.

    For example: holdfast projects --user ada
    """
    # Only for those who have projects.
    from holdfast_cli.hooks.session_state import roots

    folders = roots()
    with options.open() as memory:
        names, more = options.page(memory.grants.projects(), limit)
        rows = [_project(memory.scoped(project=name), name, folders.get(name)) for name in names]
    columns: dict[str, list[Part]] = {
        "project": list(names),
        "chats": [f"{row['chats']:,}" for row in rows],
        "messages": [f"{row['messages']:,}" for row in rows],
        "newest": [when(row["newest"]) for row in rows],
        "folder": [row["root"] or "–" for row in rows],
    }
    options.show_list({"projects": plain(rows), "more": more}, columns, f"No projects{options.whose()}.")


# Any: values of several types.
def _project(memory: Memory, name: str, root: str | None) -> dict[str, Any]:
    """Return the name and the folder of a project, and what is stored of it."""
    chats = memory.chats(archived=None)
    newest = max((chat.newest for chat in chats), default=None)
    messages = sum(chat.messages for chat in chats)
    return {"project": name, "root": root, "chats": len(chats), "messages": messages, "newest": newest}


def grants(options: Options, *, limit: int | None = None) -> None:
    """List who may read or write the spaces of others, or change that: add, revoke, move, copy.

    For example: holdfast grants --user ada
    """
    with options.open(admin=not options.user) as memory:
        rows, more = options.page(memory.grants, limit)
    columns: dict[str, list[Part]] = {
        "space": [grant.space for grant in rows],
        "to": [grant.to for grant in rows],
        "rights": [grant.rights for grant in rows],
        "by": [grant.by or "the application" for grant in rows],
        "since": [when(grant.at) for grant in rows],
    }
    nothing = f"Nothing is granted{options.whose()}."
    options.show_list({"grants": plain(rows), "more": more}, columns, nothing)


def add(options: Options, *, space: str, grantee: str, rights: Rights = "read") -> None:
    """Grant a user a right on a space.

    For example: holdfast grants add project:shop --to user:bob --user ada
    """
    with options.open() as memory:
        grant = memory.grants.add(space, to=grantee, rights=rights, by="user")
    options.answer({"grant": plain(grant)}).say(f"{grant.to} may {grant.rights} {grant.space}.")


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
