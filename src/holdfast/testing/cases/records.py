"""records, profile: what is known, and who said so."""

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


@case("profile")
def profile_and_soul_are_separate(memory: FullProvider) -> None:
    """Writing the profile changes nothing of the soul, and the other way round."""
    memory.remember(LISBON, "profile", by="user")
    memory.remember(COACH, "soul", by="user")
    memory.remember(CATS, "profile", by="user")
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
