"""records, profile, constraints: what is known, and who said so."""

from __future__ import annotations

from functools import partial

from holdfast.testing.case import Again, Whole, at_once, case, expect, lasting, refuses, same, text_of, texts
from holdfast.types import Writer

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


@lasting("records")
def what_is_known_lasts(memory: Whole, again: Again) -> None:
    """Expect records when the storage is opened again."""
    stored = [memory.remember(PORT, by="user"), memory.remember(SHOES, "lesson", by="user")]
    found = again().records()
    same(
        [(one.id, one.kind, one.text) for one in found],
        [(one.id, one.kind, one.text) for one in stored],
        "What is known is there when the storage is opened again.",
    )


@lasting("profile")
def the_profile_lasts(memory: Whole, again: Again) -> None:
    """Expect who the user is when the storage is opened again."""
    memory.remember(PLACE, "profile")
    same(text_of(again().get("profile")), PLACE, "The profile is there when the storage is opened again.")


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
def what_is_retracted_cannot_be_changed(memory: Whole) -> None:
    """Expect that it is not there any more: to change it would bring it back unseen."""
    record = memory.remember(PORT, by="user")
    memory.retract(record.id, by="user")
    refuses(
        lambda: memory.replace(record.id, PLACE, by="user"), "`replace` refuses a record that was retracted."
    )
    refuses(lambda: memory.retract(record.id, by="user"), "A record is retracted once.")
    same(memory.records(), [], "What is refused changes nothing.")


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
    same(
        (text_of(memory.get("profile")), text_of(memory.get("soul"))),
        ("", ""),
        'Profile and soul are "" until they are written.',
    )


@case("profile")
def a_profile_is_written_whole(memory: Whole) -> None:
    """Expect it to be replaced, not added to."""
    memory.remember("Lives in Lisbon.", "profile", by="user")
    same(text_of(memory.get("profile")), "Lives in Lisbon.", "`profile` gives what `set_profile` wrote.")
    memory.remember("Has two cats.", "profile", by="user")
    same(
        text_of(memory.get("profile")),
        "Has two cats.",
        "`set_profile` writes the whole profile: it does not add to it.",
    )


@case("profile")
def an_empty_profile_is_none(memory: Whole) -> None:
    """Expect an empty text to take back what there is, and another to be written after it."""
    memory.remember("Lives in Lisbon.", "profile", by="user")
    memory.retract("profile", by="user")
    same(text_of(memory.get("profile")), "", 'After `set_profile("")`, `profile` gives "".')
    memory.remember("Has two cats.", "profile", by="user")
    same(
        text_of(memory.get("profile")), "Has two cats.", "A profile that was taken back can be written again."
    )


@case("profile")
def profile_and_soul_are_two_things(memory: Whole) -> None:
    """Expect each to stay when the other is written."""
    memory.remember("Lives in Lisbon.", "profile", by="user")
    memory.remember("A patient coach.", "soul", by="user")
    memory.remember("Has two cats.", "profile", by="user")
    same(text_of(memory.get("soul")), "A patient coach.", "Writing the profile leaves the soul alone.")
    memory.remember("A strict coach.", "soul", by="user")
    same(
        (text_of(memory.get("profile")), text_of(memory.get("soul"))),
        ("Has two cats.", "A strict coach."),
        "Profile and soul are two things.",
    )


# constraints


@case("profile")
def there_are_no_constraints_at_first(memory: Whole) -> None:
    """Expect an empty list and no error."""
    same(memory.records(kind="constraint"), [], "There are no constraints until one is added.")


@case("profile")
def constraints_are_added(memory: Whole) -> None:
    """Expect each to have an id of its own, and the list to begin with the oldest."""
    stored = [memory.remember(text, "constraint", by="user") for text in ("No calls after nine.", "No nuts.")]
    expect(all(one.id for one in stored), "A constraint has an id.")
    same(len({one.id for one in stored}), 2, "No two constraints have the same id.")
    same(
        texts(memory.records(kind="constraint")),
        ["No calls after nine.", "No nuts."],
        "Constraints are listed, the oldest first.",
    )


@case("profile")
def a_removed_constraint_stays_away(memory: Whole) -> None:
    """Expect it to stay away when others are added after it."""
    first = memory.remember("No calls after nine.", "constraint", by="user")
    memory.remember("No nuts.", "constraint", by="user")
    memory.retract(first.id, by="user")
    same(
        texts(memory.records(kind="constraint")), ["No nuts."], "A constraint that was removed is not listed."
    )
    memory.remember("No meetings on Friday.", "constraint", by="user")
    same(
        texts(memory.records(kind="constraint")),
        ["No nuts.", "No meetings on Friday."],
        "A constraint that was removed does not come back.",
    )


@case("profile")
def an_unknown_constraint_is_refused(memory: Whole) -> None:
    """Expect an error that changes nothing."""
    first = memory.remember("No nuts.", "constraint", by="user")
    refuses(
        lambda: memory.retract("unknown", by="user"),
        "`remove_constraint` refuses an unknown id.",
    )
    memory.retract(first.id, by="user")
    refuses(lambda: memory.retract(first.id, by="user"), "A constraint is removed once.")


@case("profile", "versions")
def what_is_refused_is_no_version(memory: Whole) -> None:
    """Expect that removing what is not there counts no version."""
    memory.remember("No nuts.", "constraint", by="user")
    before = memory.version()
    refuses(
        lambda: memory.retract("unknown", by="user"),
        "`remove_constraint` refuses an unknown id.",
    )
    same(memory.version(), before, "What is refused counts no version.")


@case("profile")
def only_the_user_confirms_a_constraint(memory: Whole) -> None:
    """Expect that nobody else adds or removes one: no agent, no tool, no reflection, and nobody who does not say who it is."""
    first = memory.remember("No nuts.", "constraint", by="user")
    others: tuple[Writer, ...] = ("agent", "tool", "reflect")
    for by in others:
        refuses(
            partial(memory.remember, "No calls.", "constraint", by=by),
            f"With by={by!r}, no constraint is added.",
        )
        refuses(partial(memory.retract, first.id, by=by), f"With by={by!r}, no constraint is removed.")
    refuses(
        lambda: memory.remember("No calls.", "constraint"), "Who does not say who it is adds no constraint."
    )
    refuses(
        lambda: memory.retract(first.id),
        "Who does not say who it is removes no constraint.",
    )
    same(texts(memory.records(kind="constraint")), ["No nuts."], "What is denied changes nothing.")
