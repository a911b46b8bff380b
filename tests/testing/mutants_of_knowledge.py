"""Defects in what is known, in lists of chats, and in prompts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import MutableMapping
from dataclasses import replace
from typing import Any, cast

from mutant import Altered, Mutant, fake_that_knows, ignoring, of_chats, of_provider, returning

from fake_ledger import Ledger
from fake_provider import FakeProvider
from holdfast import Change, ChatInfo, Message, Record, Writer
from holdfast.contract import Provider
from holdfast.testing.case import FullChat, FullProvider, FullReading
from stored_texts import text_of

# What is known


class Returning(Ledger):
    """Bring back what was taken back when something else is written."""

    def write(self, record: Record) -> Record:
        self._rows = [one for one in self._rows if not one.retracted]
        return super().write(record)


class Rewriting(Ledger):
    """Forget what came after the version that is rolled back to."""

    def rollback(self, what: str, agent: str, version: int, by: Writer) -> list[Record]:
        self.check(version)
        self._rows = self._rows[:version]
        return [one for one in self.read(agent) if what in (one.id, one.kind)]


class Unguarded(Ledger):
    """Let everybody write constraints."""

    def write(self, record: Record) -> Record:
        return replace(super().write(replace(record, by="user")), by=record.by)


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
    Mutant("a removed constraint comes back", "profile", fake_that_knows(Returning)),
    Mutant("an agent may add constraints", "profile", fake_that_knows(Unguarded)),
    Mutant("a rollback rewrites history", "versions", fake_that_knows(Rewriting)),
    of_provider("removing what is not there succeeds", "profile", retract=lenient),
    of_provider("a profile is added to", "profile", remember=added_profile),
    of_provider("a replaced text is kept", "records", replace=added_text),
    of_provider("a rollback to nothing keeps the first version", "versions", rollback=back_to_something),
    of_provider("at(version) gives the newest", "versions", at=newest_at),
    of_provider("changes come the oldest first", "changes", changes=oldest_changes),
)


class Blank(FakeProvider):
    """Take a name that is not there for a blank."""

    @property
    def scratchpad(self) -> MutableMapping[str, str]:
        return defaultdict(str, super().scratchpad)


class Shared(FakeProvider):
    """Have one pad for everybody."""

    @property
    def scratchpad(self) -> MutableMapping[str, str]:
        return self._spaces[""].scratchpad


PADS = (
    Mutant("an unknown name on a pad is blank", "scratchpad", lambda _: Blank()),
    Mutant("all users have one pad", "scopes", lambda _: Shared()),
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


class Constraining(Altered):
    """Let the background work add a constraint."""

    @property
    def learning(self) -> Altered:
        return Altered(
            self._inner,
            {"work": lambda memory, **_: memory.remember("Be brief.", "constraint", by="user")},
            {},
        )


def constraining(inner: Provider) -> Provider:
    return cast("Provider", Constraining(inner, {}, {}))


SESSIONS = (
    of_chats("a snapshot shows what comes later", "snapshots", prompt=leaking),
    of_chats("advancing does nothing", "snapshots", refresh=lambda chat: chat.snapshot() or 0),
    of_provider("chats are listed by their beginning", "sessions", chats=returning("chats", by_beginning)),
    of_chats("a history leaves out what tools said", "sessions", history=returning("history", without_tools)),
    of_chats("the first page is the oldest", "sessions", history=oldest_page),
    of_chats("a review is always of everything", "review", review=ignoring("review", since=None)),
    of_chats("the system text is lost", "prompt", prompt=ignoring("prompt", system="")),
    of_chats("nothing is recalled for a prompt", "prompt", prompt=ignoring("prompt", query=None)),
    Mutant("learning adds a constraint", "learn", constraining),
)
