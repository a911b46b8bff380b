"""records, profile, versions, changes: what is known, who said so, and what was known before."""

from __future__ import annotations

from functools import partial

from holdfast.testing.case import (
    CATS,
    COACH,
    LISBON,
    FullProvider,
    Reopened,
    case,
    concurrently,
    expect,
    lasting,
    refuses,
    same,
    text_of,
    texts,
)
from holdfast.types import Record, Writer

PORT = "The harbour opens at six."
PLACE = "Lives in Lisbon with two cats."
SHOES = "Trail shoes wear out after 800 kilometres."


# Records, and constraints, which are records of a kind


def _ids_and_texts(records: list[Record]) -> list[tuple[str, str]]:
    return [(record.id, record.text) for record in records]


def _check_list(memory: FullProvider, kind: str) -> None:
    same(memory.records(kind=kind), [], "`records` at first")
    stored = [memory.remember(text, kind, by="user") for text in (PORT, PLACE, SHOES)]
    same(texts(stored), [PORT, PLACE, SHOES], "Texts that `remember` returns")
    same(len({record.id for record in stored} - {""}), 3, "Different ids")
    records = memory.records(kind=kind)
    same(_ids_and_texts(records), _ids_and_texts(stored), "`records`")


def _check_retraction(memory: FullProvider, kind: str) -> None:
    first = memory.remember(PORT, kind, by="user")
    memory.remember(PLACE, kind, by="user")
    memory.retract(first.id, by="user")
    same(texts(memory.records(kind=kind)), [PLACE], "`records` after `retract`")
    memory.remember(SHOES, kind, by="user")
    same(texts(memory.records(kind=kind)), [PLACE, SHOES], "`records` after another `remember`")


def _check_unknown(memory: FullProvider, kind: str) -> None:
    record = memory.remember(PORT, kind, by="user")
    refuses(memory.replace, "unknown", PLACE, by="user")
    refuses(memory.retract, "unknown", by="user")
    same(texts(memory.records(kind=kind)), [PORT], "`records`")
    memory.retract(record.id, by="user")
    refuses(memory.replace, record.id, PLACE, by="user")
    refuses(memory.retract, record.id, by="user")
    same(memory.records(kind=kind), [], "`records` after `retract`")


@case("records")
def records_are_listed(memory: FullProvider) -> None:
    """Each record has an id of its own, and `records` lists them with these ids, the oldest first."""
    _check_list(memory, "fact")


@case("profile")
def constraints_are_listed(memory: FullProvider) -> None:
    """Each constraint has an id of its own, and `records` lists them with these ids, the oldest first."""
    _check_list(memory, "constraint")


@case("records")
def a_retracted_record_is_gone(memory: FullProvider) -> None:
    """A record that was retracted is not listed, also after others are written."""
    _check_retraction(memory, "fact")


@case("profile")
def a_retracted_constraint_is_gone(memory: FullProvider) -> None:
    """A constraint that was retracted is not listed, also after others are written."""
    _check_retraction(memory, "constraint")


@case("records")
def an_unknown_record_is_refused(memory: FullProvider) -> None:
    """`replace` and `retract` refuse an unknown id and that of a retracted record, and change nothing."""
    _check_unknown(memory, "fact")


@case("profile")
def an_unknown_constraint_is_refused(memory: FullProvider) -> None:
    """`replace` and `retract` refuse an unknown id and that of a retracted constraint, and change nothing."""
    _check_unknown(memory, "constraint")


@lasting("records")
def records_last(memory: FullProvider, reopened: Reopened) -> None:
    """Records are there when the storage is opened again, with their ids and kinds."""
    stored = [memory.remember(PORT, by="user"), memory.remember(SHOES, "lesson", by="user")]
    records = reopened().records()
    same(_ids_and_texts(records), _ids_and_texts(stored))
    same([record.kind for record in records], [record.kind for record in stored])


@case("records")
def records_are_listed_by_kind(memory: FullProvider) -> None:
    """A record has the kind that it was given, "fact" by default; `records(kind=…)` lists those of a kind."""
    memory.remember(PORT, by="user")
    memory.remember(SHOES, "lesson", by="user")
    same([record.kind for record in memory.records()], ["fact", "lesson"])
    same(texts(memory.records(kind="lesson")), [SHOES], "`records(kind=…)`")


@case("records")
def a_replaced_record_keeps_its_place(memory: FullProvider) -> None:
    """`replace` gives a record a new text; its id and its place in the list stay."""
    first = memory.remember(PORT, by="user")
    memory.remember(PLACE, by="user")
    replaced = memory.replace(first.id, SHOES, by="user")
    same((replaced.id, replaced.text), (first.id, SHOES), "`id` and `text`")
    same(texts(memory.records()), [SHOES, PLACE], "`records`")


@case("records")
def concurrent_records_are_all_stored(memory: FullProvider) -> None:
    """Records that are written concurrently are all stored."""
    names = ("apricots", "bicycles", "cathedrals", "dolphins", "elephants", "ferries")
    written = [f"A lesson about {name}." for name in names]
    concurrently([partial(memory.remember, text, "lesson", by="user") for text in written])
    same(sorted(texts(memory.records())), written)


# profile


@lasting("profile")
def the_profile_lasts(memory: FullProvider, reopened: Reopened) -> None:
    """The profile is there when the storage is opened again."""
    memory.remember(PLACE, "profile")
    same(text_of(reopened().get("profile")), PLACE)


def profile_and_soul(memory: FullProvider) -> tuple[str, str]:
    """Return the two texts."""
    return text_of(memory.get("profile")), text_of(memory.get("soul"))


@case("profile")
def a_profile_is_written_whole(memory: FullProvider) -> None:
    """There is no profile until one is written, and writing another replaces all of it."""
    same(profile_and_soul(memory), ("", ""), "Profile and soul at first")
    for text in (LISBON, CATS):
        memory.remember(text, "profile", by="user")
        same(text_of(memory.get("profile")), text)


@case("profile")
def a_profile_can_be_retracted(memory: FullProvider) -> None:
    """`retract("profile")` takes the profile back, and another can be written after it."""
    memory.remember(LISBON, "profile", by="user")
    memory.retract("profile", by="user")
    same(text_of(memory.get("profile")), "", "Profile after `retract`")
    memory.remember(CATS, "profile", by="user")
    same(text_of(memory.get("profile")), CATS, "Profile that was written again")


def _write_three(memory: FullProvider) -> None:
    memory.remember(LISBON, "profile", by="user")
    memory.remember(COACH, "soul", by="user")
    memory.remember(CATS, "profile", by="user")


@case("profile")
def profile_and_soul_are_separate(memory: FullProvider) -> None:
    """Writing the profile changes nothing of the soul, and the other way round."""
    _write_three(memory)
    same(profile_and_soul(memory), (CATS, COACH))
    memory.remember("A strict coach.", "soul", by="user")
    same(profile_and_soul(memory), (CATS, "A strict coach."))


# Constraints


@case("profile", "versions")
def a_refusal_is_no_version(memory: FullProvider) -> None:
    """A write that is refused does not change the version."""
    memory.remember("No nuts.", "constraint", by="user")
    before = memory.version()
    refuses(memory.retract, "unknown", by="user")
    same(memory.version(), before)


@case("profile")
def only_the_user_confirms_a_constraint(memory: FullProvider) -> None:
    """Adding and retracting a constraint is denied unless `by` is "user", also where `by` is not given."""
    first = memory.remember("No nuts.", "constraint", by="user")
    others: tuple[Writer | None, ...] = ("agent", "tool", "reflect", None)
    for by in others:
        refuses(memory.remember, "No calls.", "constraint", by=by)
        refuses(memory.retract, first.id, by=by)
    refuses(memory.remember, "No calls.", "constraint")
    refuses(memory.retract, first.id)
    same(texts(memory.records(kind="constraint")), ["No nuts."])


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
