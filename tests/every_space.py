"""Every kind of space with something in it, for tests of what keeps, copies or checks all of a database."""

from __future__ import annotations

from typing import Any

from holdfast import Memory

# Of each kind the parts of its scope; names with the characters that are escaped in a space are among them.
KINDS: dict[str, dict[str, str]] = {
    "a user": {"user": "ada"},
    "a project": {"user": "ada", "project": "shop"},
    "another project": {"user": "ada", "project": "50% /off"},
    "an agent": {"user": "ada", "agent": "coach"},
    "a project of an agent": {"user": "ada", "project": "shop", "agent": "coach"},
    "another user": {"user": "a/b%"},
    "what all share": {"user": ""},
    "a project of nobody": {"user": "", "project": "shop"},
    "a team": {"user": "", "team": "core"},
    "another team": {"user": "", "team": "a/b"},
    "another tenant": {"tenant": "other", "user": "ada"},
    "a team of another tenant": {"tenant": "other", "user": "", "team": "core"},
}
SPACES = len(KINDS) - 2  # an agent shares those of its user


def handles(app: Memory) -> dict[str, Memory]:
    """Return a handle for each kind of space, on a memory that acts for all."""
    return {name: app.scoped(**parts) for name, parts in KINDS.items()}


def fill_every_space(app: Memory) -> None:
    """Store in each kind of space what only that one has, grant and revoke rights, and move a record."""
    for name, memory in handles(app).items():
        chat = memory.chat(f"chat of {name}")
        chat.append(role="user", content=f"Words of {name}.")
        chat.append(role="assistant", content="Yes.")
        chat.remember(f"{name.capitalize()} is known for {name!r}", by="user")
        memory.scratchpad[name] = name
        chat.prompt(budget=1_000)
    app.grants.add("team:core", to="user:ada", rights="write")
    app.grants.add("team:core", to="user:bob")
    app.grants.revoke("team:core", to="user:bob")
    shop = app.scoped(user="ada", project="shop")
    shop.grants.move(shop.remember("Ada reviews on Mondays.", by="user").id, "user", by="user")


def told(memory: Memory) -> dict[str, Any]:
    """Return what a handle tells of its own space."""
    chats = memory.chats(archived=None)
    changes = [one for one in memory.changes() if one.kind != "grant"]
    return {
        "messages": {one.id: [(m.id, m.content) for m in memory.chat(one.id).history()] for one in chats},
        "snapshots": {one.id: memory.chat(one.id).snapshot() for one in chats},
        "records": sorted((record.id, record.text) for record in memory.records()),
        "changes": [(one.version, one.action, one.id, one.after, one.why) for one in changes],
        "scratchpad": dict(memory.scratchpad),
    }


def told_of_every_space(app: Memory) -> dict[str, Any]:
    """Return what each kind of space tells, and the rights and moves between them."""
    ada = app.scoped(user="ada")
    return {
        **{name: told(memory) for name, memory in handles(app).items()},
        "grants": [(grant.space, grant.to, grant.rights) for grant in app.grants],
        "history of grants": [change.why for change in app.scoped(team="core").changes(kind="grant")],
        "projects": ada.grants.projects(),
    }
