"""Defects in what is known, in lists of chats, and in prompts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, MutableMapping
from dataclasses import replace
from typing import Any, cast

from mutant import Altered, Mutant, fake_that_knows, of_chats, of_provider

from fake_ledger import Ledger
from fake_provider import FakeProvider
from holdfast import (
    ChatInfo,
    Message,
    Record,
    Writer,
)
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


class Reviving(Ledger):
    """Change a record that was taken back as if it were there."""

    def change(self, name: str, agent: str, change: Callable[[Record], Record]) -> Record:
        there = next((one for one in self._rows if one.id == name), None)
        return self.write(change(there)) if there else super().change(name, agent, change)


def lenient(memory: FullProvider, what: str, **options: Any) -> Record:
    """Count a version for removing what is not there."""
    if what == "profile" or memory.get(what):
        return memory.retract(what, **options)
    return memory.remember("nothing", by=options.get("by"))


def added_profile(memory: FullProvider, text: str, kind: str = "fact", **options: Any) -> Record:
    before = text_of(memory.get("profile")) if kind == "profile" else ""
    return memory.remember(f"{before} {text}".strip(), kind, **options)


def profile_that_is_never_empty(memory: FullProvider, what: str, **options: Any) -> Record:
    there = memory.get("profile")
    return there if what == "profile" and there else memory.retract(what, **options)


def constraint_of_the_user(
    memory: FullProvider, text: str, kind: str = "fact", by: Writer | None = None, **options: Any
) -> Record:
    by = "user" if by is None and kind == "constraint" else by
    return memory.remember(text, kind, by=by, **options)


def soul_as_profile(memory: FullProvider, text: str, kind: str = "fact", **options: Any) -> Record:
    return memory.remember(text, "profile" if kind == "soul" else kind, **options)


def rolled_back_to_something(memory: FullProvider, what: str, version: int) -> list[Record]:
    """Go back to the first version where there was nothing yet."""
    return memory.rollback(what, version or 1)


def newest_at(memory: FullProvider, version: int) -> FullReading:
    """Give what is known now, whatever the version."""
    memory.at(version)
    return memory.at(memory.version())


def present_before_the_first(memory: FullProvider, version: int) -> FullReading:
    return memory.at(version or memory.version())


KNOWING = (
    Mutant("a removed constraint comes back", "profile", fake_that_knows(Returning)),
    Mutant("an agent may add constraints", "profile", fake_that_knows(Unguarded)),
    Mutant("a rollback rewrites history", "versions", fake_that_knows(Rewriting)),
    Mutant("a record that was taken back is changed", "records", fake_that_knows(Reviving)),
    of_provider(
        "who says nothing is the user",
        "profile",
        remember=constraint_of_the_user,
    ),
    of_provider(
        "a rollback of nothing succeeds",
        "versions",
        rollback=lambda memory, what, version: memory.rollback(what, version) if what != "unknown" else [],
    ),
    of_provider(
        "the limit comes before the kind",
        "changes",
        changes=lambda memory, kind=None, limit=None: [
            one for one in memory.changes(limit=limit) if kind in (None, one.kind)
        ],
    ),
    of_provider("removing what is not there succeeds", "profile", retract=lenient),
    of_provider("a profile is added to", "profile", remember=added_profile),
    of_provider("a profile is not taken back", "profile", retract=profile_that_is_never_empty),
    of_provider(
        "a rollback to nothing keeps the first version", "versions", rollback=rolled_back_to_something
    ),
    of_provider(
        "the soul is the profile",
        "profile",
        remember=soul_as_profile,
        get=lambda memory, what: memory.get("profile" if what == "soul" else what),
    ),
    of_provider("at(version) gives the newest", "versions", at=newest_at),
    of_provider("at(0) is now", "versions", at=present_before_the_first),
    of_provider(
        "changes come the oldest first",
        "changes",
        changes=lambda memory, kind=None, limit=None: memory.changes(kind=kind)[::-1][:limit],
    ),
    of_provider(
        "a rollback is by the agent",
        "versions",
        rollback=lambda memory, what, version: memory.rollback(what, version, by="agent"),
    ),
    of_provider(
        "a replaced text is kept",
        "records",
        replace=lambda memory, what, text, by: memory.replace(
            what, next((one.text for one in memory.records() if one.id == what), "") + text, by=by
        ),
    ),
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


def never_frozen_at_first(chat: FullChat, *args: Any, **options: Any) -> object:
    """Take version 0 for now."""
    if chat.snapshot() == 0:
        chat.refresh()
    return chat.prompt(*args, **options)


def made_by_naming(chat: FullChat, title: str) -> None:
    if not chat.stats().messages:
        chat.append([Message("system", "begun")])
    chat.rename(title)


def oldest_first(memory: FullProvider, **options: Any) -> list[ChatInfo]:
    """Sort by when a chat began."""
    return sorted(memory.chats(**options), key=lambda one: one.oldest, reverse=True)


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
    of_chats("a snapshot of nothing shows what comes later", "snapshots", prompt=never_frozen_at_first),
    of_chats("advancing does nothing", "snapshots", refresh=lambda chat: chat.snapshot() or 0),
    of_provider(
        "archived chats are listed",
        "sessions",
        chats=lambda memory, archived=False, **options: memory.chats(archived=None, **options),
    ),
    of_provider(
        "a page of chats is taken before archived ones are left out",
        "sessions",
        chats=lambda memory, archived=False, **page: [
            one for one in memory.chats(archived=None, **page) if archived in (None, one.archived)
        ],
    ),
    of_chats(
        "a history leaves out what tools said",
        "sessions",
        history=lambda chat, limit=None, before=None, after=None: [
            one for one in chat.history(limit, before=before, after=after) if one.role != "tool"
        ],
    ),
    of_provider("chats are listed by their beginning", "sessions", chats=oldest_first),
    of_chats("naming makes a chat", "sessions", rename=made_by_naming),
    of_chats(
        "the first page is the oldest",
        "sessions",
        history=lambda chat, limit=None, before=None, after=None: chat.history(before=before, after=after)[
            :limit
        ],
    ),
    of_chats(
        "a review is always of everything",
        "review",
        review=lambda chat, since=None, limit=200: chat.review(limit=limit),
    ),
    of_chats(
        "the system text is lost",
        "prompt",
        prompt=lambda chat, budget=8_000, query=None, system="": chat.prompt(budget, query),
    ),
    of_chats(
        "nothing is recalled for a prompt",
        "prompt",
        prompt=lambda chat, budget=8_000, query=None, system="": chat.prompt(budget, system=system),
    ),
    Mutant("learning adds a constraint", "learn", constraining, of_the_fake=False),
)
