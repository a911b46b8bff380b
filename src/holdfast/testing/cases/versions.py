"""versions, changes: what was known at any earlier version, the way back to it, and who changed what."""

from __future__ import annotations

from holdfast.testing.case import (
    CATS,
    COACH,
    LISBON,
    FullProvider,
    case,
    expect,
    refuses,
    same,
    text_of,
    texts,
)
from holdfast.testing.cases.records import PORT, SHOES, profile_and_soul


def _write_three(memory: FullProvider) -> None:
    memory.remember(LISBON, "profile", by="user")
    memory.remember(COACH, "soul", by="user")
    memory.remember(CATS, "profile", by="user")


def _profiles(memory: FullProvider) -> list[str]:
    """Return the profile of each version."""
    return [text_of(memory.at(n).get("profile")) for n in range(memory.version() + 1)]


# versions


@case("versions", "profile")
def each_write_is_a_version(memory: FullProvider) -> None:
    """The version is 0 at first; each write of the profile or soul adds one to it, and a read does not."""
    same(memory.version(), 0, "Version at first")
    for n, (text, kind) in enumerate([(LISBON, "profile"), (COACH, "soul"), (CATS, "profile")], 1):
        memory.remember(text, kind, by="user")
        same(memory.version(), n, "Version after a write")
    memory.get("profile")
    same(memory.version(), 3, "Version after a read")


@case("versions", "profile")
def each_version_can_be_read(memory: FullProvider) -> None:
    """`at(n)` has the number, profile and soul of version n, also after later writes; 0 has neither."""
    _write_three(memory)
    same([memory.at(n).version() for n in range(4)], [0, 1, 2, 3], "`at(n).version()`")
    same(_profiles(memory), ["", LISBON, LISBON, CATS], "Profiles")
    same([text_of(memory.at(n).get("soul")) for n in range(4)], ["", "", COACH, COACH], "Souls")
    before = memory.at(1)
    memory.remember("Moved to Porto.", "profile", by="user")
    same(text_of(before.get("profile")), LISBON, "Profile of version 1 after another write")


@case("versions", "profile")
def constraints_of_a_version_can_be_read(memory: FullProvider) -> None:
    """`at(n).records(kind="constraint")` lists the constraints of version n, also those retracted since."""
    first = memory.remember("No calls after nine.", "constraint", by="user")
    memory.remember("No nuts.", "constraint", by="user")
    memory.retract(first.id, by="user")
    by_version = [texts(memory.at(n).records(kind="constraint")) for n in range(4)]
    same(by_version, [[], ["No calls after nine."], ["No calls after nine.", "No nuts."], ["No nuts."]])


@case("versions", "records")
def records_of_a_version_can_be_read(memory: FullProvider) -> None:
    """`at(n).records()` lists the records of version n, with the texts of then."""
    record = memory.remember(PORT, "lesson", by="user")
    memory.replace(record.id, SHOES, by="user")
    memory.retract(record.id, by="user")
    same([texts(memory.at(n).records()) for n in range(4)], [[], [PORT], [SHOES], []])


@case("versions", "profile")
def an_unknown_version_is_refused(memory: FullProvider) -> None:
    """`at` and `rollback` refuse an unknown version, `rollback` also an unknown id, and write nothing."""
    _write_three(memory)
    for version in (4, -1):
        refuses(memory.at, version)
        refuses(memory.rollback, "profile", version)
    refuses(memory.rollback, "unknown", 1)
    same((memory.version(), text_of(memory.get("profile"))), (3, CATS))


@case("versions", "profile")
def a_rollback_is_a_new_version(memory: FullProvider) -> None:
    """`rollback` writes the text of an earlier version as a new one and returns it; nothing else changes."""
    _write_three(memory)
    same(texts(memory.rollback("profile", 1)), [LISBON], "Texts that `rollback` returns")
    same(profile_and_soul(memory), (LISBON, COACH), "Profile and soul")
    same(memory.version(), 4, "Version")
    same(_profiles(memory), ["", LISBON, LISBON, CATS, LISBON], "Profiles")


@case("versions", "profile")
def a_rollback_to_version_zero_retracts(memory: FullProvider) -> None:
    """After a rollback to version 0, there is no profile."""
    _write_three(memory)
    memory.rollback("profile", 0)
    same(text_of(memory.get("profile")), text_of(memory.at(0).get("profile")))


@case("versions", "profile", "changes")
def a_rollback_is_by_the_user(memory: FullProvider) -> None:
    """A rollback is a change by the user, with the texts before and after."""
    _write_three(memory)
    memory.rollback("profile", 1)
    newest = memory.changes(limit=1)[0]
    same((newest.by, newest.before, newest.after), ("user", CATS, LISBON))


@case("versions", "records")
def a_record_can_be_rolled_back(memory: FullProvider) -> None:
    """`rollback` of a record writes its text of an earlier version, also after the record was retracted."""
    record = memory.remember(PORT, "lesson", by="user")
    memory.replace(record.id, SHOES, by="user")
    memory.rollback(record.id, 1)
    same(texts(memory.records()), [PORT])
    memory.retract(record.id, by="user")
    memory.rollback(record.id, 2)
    same(texts(memory.records()), [SHOES], "Records after `retract` and `rollback`")


# changes


@case("changes", "profile")
def changes_are_listed_newest_first(memory: FullProvider) -> None:
    """`changes` lists changes, newest first, with the texts before and after, writer, time and version."""
    same(memory.changes(), [], "Changes at first")
    memory.remember(LISBON, "profile", by="user")
    memory.remember(CATS, "profile", by="agent")
    changes = memory.changes()
    wanted = [(LISBON, CATS, "agent"), (None, LISBON, "user")]
    same([(change.before, change.after, change.by) for change in changes], wanted)
    expect(all(change.at for change in changes), "A change has no time.")
    versions = [change.version for change in changes]
    expect(versions == sorted(set(versions), reverse=True), "The versions do not fall.")


@case("changes", "profile")
def changes_are_listed_by_kind(memory: FullProvider) -> None:
    """`changes` lists those of a kind, the newest ones up to a limit, which counts those of the kind only."""
    _write_three(memory)
    same([change.kind for change in memory.changes()], ["profile", "soul", "profile"], "Kinds")
    same([change.after for change in memory.changes(kind="soul")], [COACH], "`kind`")
    same([change.after for change in memory.changes(limit=1)], [CATS], "`limit`")
    same([change.after for change in memory.changes(kind="soul", limit=1)], [COACH], "`kind` and `limit`")


@case("changes", "profile")
def a_retraction_is_a_change(memory: FullProvider) -> None:
    """A retraction is a change with the text that was there before, and None after it."""
    first = memory.remember("No nuts.", "constraint", by="user")
    memory.retract(first.id, by="user")
    newest = memory.changes(limit=1)[0]
    same((newest.id, newest.before, newest.after), (first.id, "No nuts.", None))


@case("changes", "records")
def changes_of_a_record_have_its_id(memory: FullProvider) -> None:
    """The changes of a record have its id and each of its texts."""
    record = memory.remember(PORT, "lesson", by="user")
    memory.replace(record.id, SHOES, by="user")
    changes = [(change.id, change.before, change.after) for change in memory.changes()]
    same(changes, [(record.id, PORT, SHOES), (record.id, None, PORT)])
