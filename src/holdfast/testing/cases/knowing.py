"""records, profile, constraints, versions, changes: what is known, now and at any time before, and who said so."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

from holdfast.testing.case import Whole, at_once, case, expect, refuses, same, texts

PORT = "The harbour opens at six."
PLACE = "Lives in Lisbon with two cats."
SHOES = "Trail shoes wear out after 800 kilometres."


# records


@case("records")
def what_is_remembered_is_listed(memory: Whole) -> None:
    """Expect it to have an id of its own, and the list to begin with the oldest."""
    same(memory.records(), [], "At first, nothing is known.")
    stored = [memory.remember(text, by="user") for text in (PORT, PLACE, SHOES)]
    same(texts(stored), [PORT, PLACE, SHOES], "`remember` returns the record with its text.")
    same(len({one.id for one in stored}), 3, "No two records have the same id.")
    same(texts(memory.records()), [PORT, PLACE, SHOES], "`records` lists what is known, the oldest first.")
    same([one.id for one in memory.records()], [one.id for one in stored], "A record keeps its id.")


@case("records")
def records_are_listed_by_kind(memory: Whole) -> None:
    """Expect facts to be facts unless another kind is named."""
    memory.remember(PORT, by="user")
    memory.remember(SHOES, "lesson", by="user")
    same(
        [one.kind for one in memory.records()], ["fact", "lesson"], "A record has the kind that it was given."
    )
    same(
        texts(memory.records(kind="lesson")),
        [SHOES],
        "`records(kind=…)` lists the records of this kind only.",
    )


@case("records")
def a_record_is_replaced_in_its_place(memory: Whole) -> None:
    """Expect the whole text to be new, and id and place to stay."""
    first = memory.remember(PORT, by="user")
    memory.remember(PLACE, by="user")
    replaced = memory.replace(first.id, SHOES, by="user")
    same(
        (replaced.id, replaced.text),
        (first.id, SHOES),
        "`replace` gives a record another text, and no other id.",
    )
    same(
        texts(memory.records()),
        [SHOES, PLACE],
        "A record that is replaced keeps its place; its old text is gone.",
    )


@case("records")
def what_is_retracted_is_gone(memory: Whole) -> None:
    """Expect it to stay away when other things are written."""
    first = memory.remember(PORT, by="user")
    memory.remember(PLACE, by="user")
    memory.retract(first.id, by="user")
    same(texts(memory.records()), [PLACE], "A record that was retracted is not listed.")
    memory.remember(SHOES, by="user")
    same(texts(memory.records()), [PLACE, SHOES], "A record that was retracted does not come back.")


@case("records")
def an_unknown_record_is_refused(memory: Whole) -> None:
    """Expect an error that writes nothing."""
    memory.remember(PORT, by="user")
    refuses(lambda: memory.replace("unknown", PLACE, by="user"), "`replace` refuses the id of no record.")
    refuses(lambda: memory.retract("unknown", by="user"), "`retract` refuses the id of no record.")
    same(texts(memory.records()), [PORT], "What is refused changes nothing.")


@case("records")
def records_written_at_once_are_all_kept(memory: Whole) -> None:
    """Expect nobody's word to be lost because others write as well."""
    names = ("apricots", "bicycles", "cathedrals", "dolphins", "elephants", "ferries")
    at_once([partial(memory.remember, f"A lesson about {name}.", "lesson", by="user") for name in names])
    same(
        sorted(texts(memory.records())),
        [f"A lesson about {name}." for name in names],
        "Records that are written at the same time are all kept.",
    )


# profile


@case("profile")
def a_profile_is_empty_at_first(memory: Whole) -> None:
    """Expect "" and no error."""
    same((memory.profile(), memory.soul()), ("", ""), 'Profile and soul are "" until they are written.')


@case("profile")
def a_profile_is_written_whole(memory: Whole) -> None:
    """Expect it to be replaced, not added to."""
    memory.set_profile("Lives in Lisbon.", by="user")
    same(memory.profile(), "Lives in Lisbon.", "`profile` gives what `set_profile` wrote.")
    memory.set_profile("Has two cats.", by="user")
    same(memory.profile(), "Has two cats.", "`set_profile` writes the whole profile: it does not add to it.")


@case("profile")
def profile_and_soul_are_two_things(memory: Whole) -> None:
    """Expect each to stay when the other is written."""
    memory.set_profile("Lives in Lisbon.", by="user")
    memory.set_soul("A patient coach.", by="user")
    memory.set_profile("Has two cats.", by="user")
    same(memory.soul(), "A patient coach.", "Writing the profile leaves the soul alone.")
    memory.set_soul("A strict coach.", by="user")
    same(
        (memory.profile(), memory.soul()),
        ("Has two cats.", "A strict coach."),
        "Profile and soul are two things.",
    )


# constraints


@case("constraints")
def there_are_no_constraints_at_first(memory: Whole) -> None:
    """Expect an empty list and no error."""
    same(memory.constraints(), [], "There are no constraints until one is added.")


@case("constraints")
def constraints_are_added(memory: Whole) -> None:
    """Expect each to have an id of its own, and the list to begin with the oldest."""
    stored = [memory.add_constraint(text, by="user") for text in ("No calls after nine.", "No nuts.")]
    expect(all(one.id for one in stored), "A constraint has an id.")
    same(len({one.id for one in stored}), 2, "No two constraints have the same id.")
    same(
        texts(memory.constraints()),
        ["No calls after nine.", "No nuts."],
        "Constraints are listed, the oldest first.",
    )


@case("constraints")
def a_removed_constraint_stays_away(memory: Whole) -> None:
    """Expect it to stay away when others are added after it."""
    first = memory.add_constraint("No calls after nine.", by="user")
    memory.add_constraint("No nuts.", by="user")
    memory.remove_constraint(first.id, by="user")
    same(texts(memory.constraints()), ["No nuts."], "A constraint that was removed is not listed.")
    memory.add_constraint("No meetings on Friday.", by="user")
    same(
        texts(memory.constraints()),
        ["No nuts.", "No meetings on Friday."],
        "A constraint that was removed does not come back.",
    )


@case("constraints")
def an_unknown_constraint_is_refused(memory: Whole) -> None:
    """Expect an error that changes nothing."""
    first = memory.add_constraint("No nuts.", by="user")
    refuses(
        lambda: memory.remove_constraint("unknown", by="user"), "`remove_constraint` refuses an unknown id."
    )
    memory.remove_constraint(first.id, by="user")
    refuses(lambda: memory.remove_constraint(first.id, by="user"), "A constraint is removed once.")


@case("constraints", "versions")
def what_is_refused_is_no_version(memory: Whole) -> None:
    """Expect that removing what is not there counts no version."""
    memory.add_constraint("No nuts.", by="user")
    before = memory.version()
    refuses(
        lambda: memory.remove_constraint("unknown", by="user"), "`remove_constraint` refuses an unknown id."
    )
    same(memory.version(), before, "What is refused counts no version.")


@case("constraints")
def only_the_user_confirms_a_constraint(memory: Whole) -> None:
    """Expect that neither an agent nor what reflects on its sessions adds or removes one."""
    first = memory.add_constraint("No nuts.", by="user")
    refuses(
        lambda: memory.add_constraint("No calls.", by="agent"),
        "An agent adds no constraint: only the user does.",
    )
    refuses(lambda: memory.add_constraint("No calls.", by="reflect"), "Reflection adds no constraint.")
    refuses(lambda: memory.remove_constraint(first.id, by="agent"), "An agent removes no constraint.")
    same(texts(memory.constraints()), ["No nuts."], "What is denied changes nothing.")


# versions


@case("versions", "profile")
def each_write_is_a_version(memory: Whole) -> None:
    """Expect one counter for all that is known, to which each write adds one."""
    same(memory.version(), 0, "The version is 0 until something is written.")
    memory.set_profile("Lives in Lisbon.", by="user")
    same(memory.version(), 1, "Each write adds one to the version.")
    memory.set_soul("A patient coach.", by="user")
    same(memory.version(), 2, "Profile and soul share one version counter.")
    memory.set_profile("Has two cats.", by="user")
    same(memory.version(), 3, "Each write adds one to the version.")
    memory.profile()
    same(memory.version(), 3, "Reading adds nothing to the version.")


@case("versions", "profile")
def each_version_can_be_looked_at(memory: Whole) -> None:
    """Expect what was known then, not what is known now, and nothing before the first write."""
    _write_three(memory)
    same([memory.at(n).version() for n in range(4)], [0, 1, 2, 3], "`at(n).version()` is n.")
    same(
        [memory.at(n).profile() for n in range(4)],
        ["", "Lives in Lisbon.", "Lives in Lisbon.", "Has two cats."],
        "`at(n).profile()` is the profile of version n: before the first write it is empty.",
    )
    same(
        [memory.at(n).soul() for n in range(4)],
        ["", "", "A patient coach.", "A patient coach."],
        "`at(n).soul()` is the soul of version n.",
    )
    before = memory.at(1)
    memory.set_profile("Moved to Porto.", by="user")
    same(before.profile(), "Lives in Lisbon.", "What was known at a version does not change any more.")


def _write_three(memory: Whole) -> None:
    memory.set_profile("Lives in Lisbon.", by="user")
    memory.set_soul("A patient coach.", by="user")
    memory.set_profile("Has two cats.", by="user")


@case("versions", "constraints")
def constraints_of_a_version_can_be_looked_at(memory: Whole) -> None:
    """Expect those to be among them that were removed since."""
    first = memory.add_constraint("No calls after nine.", by="user")
    memory.add_constraint("No nuts.", by="user")
    memory.remove_constraint(first.id, by="user")
    same(
        [texts(memory.at(n).constraints()) for n in range(4)],
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
    same((memory.version(), memory.profile()), (3, "Has two cats."), "What is refused writes nothing.")


@case("versions", "profile")
def a_rollback_writes_a_new_version(memory: Whole) -> None:
    """Expect it to say what the old one said, and to change nothing of what was before."""
    _write_three(memory)
    [record] = memory.rollback("profile", 1)
    same(
        memory.profile(),
        "Lives in Lisbon.",
        "After a rollback, the profile says what it said in that version.",
    )
    same(record.text, "Lives in Lisbon.", "`rollback` returns what it wrote.")
    same(memory.version(), 4, "A rollback is a new version.")
    same(memory.soul(), "A patient coach.", "A rollback of the profile leaves the soul alone.")
    same(
        [memory.at(n).profile() for n in range(5)],
        ["", "Lives in Lisbon.", "Lives in Lisbon.", "Has two cats.", "Lives in Lisbon."],
        "A rollback rewrites no version that was there before.",
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
    memory.set_profile("Lives in Lisbon.", by="user")
    memory.set_profile("Has two cats.", by="agent")
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
        [one.after for one in memory.changes(kind="profile", limit=5)],
        ["Has two cats.", "Lives in Lisbon."],
        "Kind and limit hold together.",
    )


@case("changes", "constraints")
def a_removal_is_a_change(memory: Whole) -> None:
    """Expect the text that was removed to be told."""
    first = memory.add_constraint("No nuts.", by="user")
    memory.remove_constraint(first.id, by="user")
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
