"""Defects in what is known, in lists of chats, and in prompts."""

from __future__ import annotations

from collections import ChainMap
from typing import Any

from mutant import Altered, ignoring, of_chats, of_provider, returning

from holdfast import Change, ChatInfo, Memory, Message, Record
from holdfast.testing.case import FullChat, FullProvider, FullReading
from stored_texts import text_of

# What is known


def bringing_back(memory: FullProvider, *args: Any, **options: Any) -> Record:
    """Bring back what was taken back when something else is written."""
    gone = [one for one in memory.changes() if one.after is None and memory.get(one.id) is None]
    for one in gone:
        memory.rollback(one.id, one.version - 1)
    return memory.remember(*args, **options)


def rewriting(memory: Memory, what: str, version: int) -> list[Record]:
    """Forget all that a record said before it is rolled back."""
    back = memory.rollback(what, version)
    for one in back:
        memory.erase(record=one.id)
    return [memory.remember(one.text, one.kind, by="user") for one in back]


def lenient(memory: FullProvider, what: str, **options: Any) -> Record:
    """Count a version for removing what is not there."""
    if what == "profile" or memory.get(what):
        return memory.retract(what, **options)
    return memory.remember("nothing", by=options.get("by"))


def added_profile(memory: FullProvider, text: str, kind: str = "fact", **options: Any) -> Record:
    before = text_of(memory.get("profile")) if kind == "profile" else ""
    return memory.remember(f"{before} {text}".strip(), kind, **options)


def added_text(memory: FullProvider, what: str, text: str, **options: Any) -> Record:
    there = memory.get(what)
    return memory.replace(what, (there.text if there else "") + text, **options)


def back_to_something(memory: FullProvider, what: str, version: int) -> list[Record]:
    """Go back to the first version where there was nothing yet."""
    return memory.rollback(what, version or 1)


def newest_at(memory: FullProvider, version: int) -> FullReading:
    """Give what is known now, whatever the version."""
    memory.at(version)
    return memory.at(memory.version())


def oldest_changes(memory: FullProvider, limit: int | None = None, **which: Any) -> list[Change]:
    return memory.changes(**which)[::-1][:limit]


KNOWING = (
    of_provider("a removed constraint comes back", "profile", remember=bringing_back),
    of_provider("an agent may add constraints", "profile", remember=ignoring("remember", by="user")),
    of_provider("a rollback rewrites history", "versions", rollback=rewriting),
    of_provider("removing what is not there succeeds", "profile", retract=lenient),
    of_provider("a profile is added to", "profile", remember=added_profile),
    of_provider("a replaced text is kept", "records", replace=added_text),
    of_provider("a rollback to nothing keeps the first version", "versions", rollback=back_to_something),
    of_provider("at(version) gives the newest", "versions", at=newest_at),
    of_provider("changes come the oldest first", "changes", changes=oldest_changes),
)


class Blank(ChainMap[str, str]):
    """Take a name that is not there for a blank."""

    def __missing__(self, name: str) -> str:
        return ""


def blank(memory: FullProvider) -> Blank:
    return Blank(memory.scratchpad)


def shared(memory: FullProvider) -> object:
    return memory.scoped(user="ada").scratchpad


PADS = (
    of_provider("an unknown name on a pad is blank", "scratchpad", scratchpad=property(blank)),
    of_provider("all users have one pad", "scopes", scratchpad=property(shared)),
)


# Sessions and prompts


def leaking(chat: FullChat, *args: Any, **options: Any) -> object:
    chat.refresh()
    return chat.prompt(*args, **options)


def by_beginning(found: list[ChatInfo]) -> list[ChatInfo]:
    return sorted(found, key=lambda one: one.oldest, reverse=True)


def without_tools(found: list[Message]) -> list[Message]:
    return [one for one in found if one.role != "tool"]


def oldest_page(chat: FullChat, limit: int | None = None, **place: Any) -> list[Message]:
    return chat.history(**place)[:limit]


def constraining(memory: FullProvider) -> Altered:
    """Let the background work add a constraint."""
    added = {"work": lambda _, **__: memory.remember("Be brief.", "constraint", by="user")}
    return Altered(memory.learning, added, {})


SESSIONS = (
    of_chats("a snapshot shows what comes later", "snapshots", prompt=leaking),
    of_chats("advancing does nothing", "snapshots", refresh=lambda chat: chat.snapshot() or 0),
    of_provider("chats are listed by their beginning", "sessions", chats=returning("chats", by_beginning)),
    of_chats("a history leaves out what tools said", "sessions", history=returning("history", without_tools)),
    of_chats("the first page is the oldest", "sessions", history=oldest_page),
    of_chats("a review is always of everything", "review", review=ignoring("review", since=None)),
    of_chats("the system text is lost", "prompt", prompt=ignoring("prompt", system="")),
    of_chats("nothing is recalled for a prompt", "prompt", prompt=ignoring("prompt", query=None)),
    of_provider("learning adds a constraint", "learn", learning=property(constraining)),
)
