"""versions, changes: what was known at any time before, the way back to it, and who changed what."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

from holdfast.testing.case import Whole, case, expect, refuses, same, text_of, texts
from holdfast.testing.cases.knowing import PORT, SHOES

# versions


@case("versions", "profile")
def each_write_is_a_version(memory: Whole) -> None:
    """Expect one counter for all that is known, to which each write adds one."""
    same(memory.version(), 0, "The version is 0 until something is written.")
    memory.remember("Lives in Lisbon.", "profile", by="user")
    same(memory.version(), 1, "Each write adds one to the version.")
    memory.remember("A patient coach.", "soul", by="user")
    same(memory.version(), 2, "Profile and soul share one version counter.")
    memory.remember("Has two cats.", "profile", by="user")
    same(memory.version(), 3, "Each write adds one to the version.")
    text_of(memory.get("profile"))
    same(memory.version(), 3, "Reading adds nothing to the version.")


@case("versions", "profile")
def each_version_can_be_looked_at(memory: Whole) -> None:
    """Expect what was known then, not what is known now, and nothing before the first write."""
    _write_three(memory)
    same([memory.at(n).version() for n in range(4)], [0, 1, 2, 3], "`at(n).version()` is n.")
    same(
        [text_of(memory.at(n).get("profile")) for n in range(4)],
        ["", "Lives in Lisbon.", "Lives in Lisbon.", "Has two cats."],
        "`at(n).profile()` is the profile of version n: before the first write it is empty.",
    )
    same(
        [text_of(memory.at(n).get("soul")) for n in range(4)],
        ["", "", "A patient coach.", "A patient coach."],
        "`at(n).soul()` is the soul of version n.",
    )
    before = memory.at(1)
    memory.remember("Moved to Porto.", "profile", by="user")
    same(
        text_of(before.get("profile")),
        "Lives in Lisbon.",
        "What was known at a version does not change any more.",
    )


def _write_three(memory: Whole) -> None:
    memory.remember("Lives in Lisbon.", "profile", by="user")
    memory.remember("A patient coach.", "soul", by="user")
    memory.remember("Has two cats.", "profile", by="user")


@case("versions", "profile")
def constraints_of_a_version_can_be_looked_at(memory: Whole) -> None:
    """Expect those to be among them that were removed since."""
    first = memory.remember("No calls after nine.", "constraint", by="user")
    memory.remember("No nuts.", "constraint", by="user")
    memory.retract(first.id, by="user")
    same(
        [texts(memory.at(n).records(kind="constraint")) for n in range(4)],
        [[], ["No calls after nine."], ["No calls after nine.", "No nuts."], ["No nuts."]],
        "`at(n).constraints()` are the constraints of version n.",
    )


@case("versions", "records")
def records_of_a_version_can_be_looked_at(memory: Whole) -> None:
    """Expect them as they were worded then."""
    record = memory.remember(PORT, "lesson", by="user")
    memory.replace(record.id, SHOES, by="user")
    memory.retract(record.id, by="user")
    same(
        [texts(memory.at(n).records()) for n in range(4)],
        [[], [PORT], [SHOES], []],
        "`at(n).records()` are the records of version n.",
    )


@case("versions", "profile")
def an_unknown_version_is_refused(memory: Whole) -> None:
    """Expect an error, not the newest version."""
    _write_three(memory)
    for version in (4, -1):
        refuses(partial(memory.at, version), f"`at` refuses version {version} when there are 3.")
        refuses(
            partial(memory.rollback, "profile", version),
            f"`rollback` refuses version {version} when there are 3.",
        )
    refuses(lambda: memory.rollback("unknown", 1), "`rollback` refuses what is no record and no kind.")
    same(
        (memory.version(), text_of(memory.get("profile"))),
        (3, "Has two cats."),
        "What is refused writes nothing.",
    )


@case("versions", "profile")
def a_rollback_writes_a_new_version(memory: Whole) -> None:
    """Expect it to say what the old one said, and to change nothing of what was before."""
    _write_three(memory)
    [record] = memory.rollback("profile", 1)
    same(
        text_of(memory.get("profile")),
        "Lives in Lisbon.",
        "After a rollback, the profile says what it said in that version.",
    )
    same(record.text, "Lives in Lisbon.", "`rollback` returns what it wrote.")
    same(memory.version(), 4, "A rollback is a new version.")
    same(text_of(memory.get("soul")), "A patient coach.", "A rollback of the profile leaves the soul alone.")
    same(
        [text_of(memory.at(n).get("profile")) for n in range(5)],
        ["", "Lives in Lisbon.", "Lives in Lisbon.", "Has two cats.", "Lives in Lisbon."],
        "A rollback rewrites no version that was there before.",
    )


@case("versions", "profile")
def a_rollback_goes_back_to_nothing(memory: Whole) -> None:
    """Expect no profile after a rollback to version 0, in which there was none."""
    _write_three(memory)
    memory.rollback("profile", 0)
    same(
        text_of(memory.get("profile")),
        text_of(memory.at(0).get("profile")),
        "After a rollback to version 0 there is no profile.",
    )


@case("versions", "profile", "changes")
def a_rollback_is_by_the_user(memory: Whole) -> None:
    """Expect the user to be named where nobody else is."""
    _write_three(memory)
    memory.rollback("profile", 1)
    newest = memory.changes(limit=1)[0]
    same(newest.by, "user", "A rollback is a change by the user.")
    same(
        (newest.before, newest.after),
        ("Has two cats.", "Lives in Lisbon."),
        "A rollback tells before and after.",
    )


@case("versions", "records")
def a_record_can_be_rolled_back(memory: Whole) -> None:
    """Expect it to be found by its id, also when it was taken back meanwhile."""
    record = memory.remember(PORT, "lesson", by="user")
    memory.replace(record.id, SHOES, by="user")
    memory.rollback(record.id, 1)
    same(texts(memory.records()), [PORT], "`rollback` gives a record the text that it had in a version.")
    memory.retract(record.id, by="user")
    memory.rollback(record.id, 2)
    same(texts(memory.records()), [SHOES], "`rollback` brings back a record that was taken back since.")


# changes


@case("changes", "profile")
def changes_are_listed_the_newest_first(memory: Whole) -> None:
    """Expect what stood there before and after, by whom, and when."""
    same(memory.changes(), [], "There are no changes until something is written.")
    memory.remember("Lives in Lisbon.", "profile", by="user")
    memory.remember("Has two cats.", "profile", by="agent")
    same(
        [(one.before, one.after, one.by) for one in memory.changes()],
        [("Lives in Lisbon.", "Has two cats.", "agent"), (None, "Lives in Lisbon.", "user")],
        "`changes` lists what changed, the newest first, with the text before (None for none) and after it.",
    )
    expect(all(one.at for one in memory.changes()), "A change says when it was made.")
    expect(
        all(one.version > two.version for one, two in pairwise(memory.changes())),
        "Each change has the version that it made; the newest has the highest.",
    )


@case("changes", "profile")
def changes_are_listed_by_kind(memory: Whole) -> None:
    """Expect no more of them than asked for, and these to be the newest."""
    _write_three(memory)
    same(
        [one.after for one in memory.changes(kind="soul")],
        ["A patient coach."],
        "`changes(kind=…)` is of this kind.",
    )
    same(
        [one.kind for one in memory.changes()],
        ["profile", "soul", "profile"],
        "A change says of which kind it is.",
    )
    same(
        [one.after for one in memory.changes(limit=1)],
        ["Has two cats."],
        "`changes(limit=1)` is the newest one.",
    )
    same(
        [one.after for one in memory.changes(kind="soul", limit=1)],
        ["A patient coach."],
        "The limit counts the changes of the kind only.",
    )


@case("changes", "profile")
def a_removal_is_a_change(memory: Whole) -> None:
    """Expect the text that was removed to be told."""
    first = memory.remember("No nuts.", "constraint", by="user")
    memory.retract(first.id, by="user")
    newest = memory.changes(limit=1)[0]
    same(
        (newest.id, newest.before, newest.after),
        (first.id, "No nuts.", None),
        "A removal tells what was removed.",
    )


@case("changes", "records")
def a_record_has_a_history(memory: Whole) -> None:
    """Expect its history under its id, from its first text to the last."""
    record = memory.remember(PORT, "lesson", by="user")
    memory.replace(record.id, SHOES, by="user")
    same(
        [(one.id, one.before, one.after) for one in memory.changes()],
        [(record.id, PORT, SHOES), (record.id, None, PORT)],
        "The changes of a record tell each of its texts.",
    )
