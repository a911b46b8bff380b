from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.search.columns import MessageColumns
from holdfast.search.query import parse
from holdfast.search.segment import IndexedDocument, Segment, build
from holdfast.text import prose
from recall_corpora import Said, conversations
from soak import cases
from tables import each

MINUTE = 60_000_000


def documents(said: list[Said], first: int = 1) -> list[IndexedDocument]:
    found = []
    for number, one in enumerate(said, first):
        text, output = prose.split(one.role, one.text)
        found.append(
            IndexedDocument(
                number,
                one.chat,
                "",
                one.role,
                one.name or "",
                one.minutes * MINUTE,
                prose.passages(text),
                output,
            )
        )
    return found


def parts(docs: list[IndexedDocument], cuts: list[int]) -> list[Segment]:
    """Cut documents into segments of given sizes, over and over."""
    segments: list[Segment] = []
    start = 0
    while start < len(docs):
        size = cuts[len(segments) % len(cuts)]
        segments.append(build(docs[start : start + size]))
        start += size
    return segments


def extended(segments: list[Segment]) -> MessageColumns:
    grown = MessageColumns()
    for segment in segments:
        grown.extend(segment)
    return grown


def added(docs: list[IndexedDocument], cuts: list[int]) -> MessageColumns:
    """Add documents partly in segments and partly one by one."""
    grown = MessageColumns()
    for segment in parts(docs, cuts):
        if segment.count % 3 == 0:
            grown.extend(segment)
            continue
        for doc in docs[segment.first - 1 : segment.last]:
            grown.extend(build([doc]))
    return grown


def blocks(grown: MessageColumns) -> dict[int, list[int]]:
    """Give the documents of each block, whatever its number, by the first of them."""
    members: dict[int, list[int]] = {}
    for doc in range(1, grown.last + 1):
        members.setdefault(int(grown.block[doc]), []).append(doc)
    return {docs[0]: docs for docs in members.values()}


def chain(minutes: list[float]) -> MessageColumns:
    """Extend by one document after the other, all of one chat."""
    docs = [
        IndexedDocument(n, "a", "", "user", "", round(m * MINUTE), ("x",)) for n, m in enumerate(minutes, 1)
    ]
    return added(docs, [1])


@each(("minutes", "blocks"), [([0, 360], 1), ([0, 360.001], 2), ([1000, 0], 2), ([0, 1, 1000, 1001], 2)])
def test_a_pause_of_more_than_six_hours_parts(minutes: list[float], blocks: int) -> None:
    grown = chain(minutes)
    assert grown.blocks == blocks
    assert (grown.previous[0], grown.next[0], grown.words[0]) == (0, 0, 0), "the place of no document"


def test_a_chat_without_pauses_is_cut_into_blocks_of_128() -> None:
    grown = chain([n / 10 for n in range(300)])
    assert [len(docs) for docs in blocks(grown).values()] == [128, 128, 44]
    assert grown.previous[129] == 128


@settings(max_examples=cases(60, 300))
@given(said=conversations(40), cuts=st.lists(st.integers(1, 7), min_size=1, max_size=9))
def test_documents_are_joined_alike_one_by_one_and_all_at_once(said: list[Said], cuts: list[int]) -> None:
    docs = documents(said)
    once, grown = extended([build(docs)]), added(docs, cuts)
    for name in ("previous", "next", "run", "turn"):
        assert getattr(once, name)[: len(docs) + 1].tolist() == getattr(grown, name)[: len(docs) + 1].tolist()
    jumps = [n for n in range(1, len(docs) + 1) if once.previous[n] not in (0, n - 1)]
    assert sorted(once.jumps()) == sorted(grown.jumps()) == jumps
    assert blocks(once) == blocks(grown)


def test_chats_of_two_agents_under_one_id_are_not_joined() -> None:
    docs = [
        IndexedDocument(n, "a", agent, "user", "", n, ("x",)) for n, agent in enumerate(["x", "y", "x"], 1)
    ]
    assert list(extended([build(docs)]).previous[1:4]) == [0, 0, 1]


def test_the_times_at_both_ends_of_the_calendar_do_not_overflow() -> None:
    ends = [-62_135_596_800_000_000, 253_402_300_799_999_999]
    docs = [IndexedDocument(n, "a", "", "user", "", at, ("x",)) for n, at in enumerate(ends, 1)]
    assert extended([build(docs)]).blocks == 2


@each("name", ["Bob Stone", "José", "McKenzie", "O'Brien", "李雷", "anna-maria"])
@each("written", [str, str.lower, str.upper])
def test_a_speaker_is_known_by_every_way_to_write_the_name(name: str, written: type[str]) -> None:
    grown = extended([build([IndexedDocument(1, "a", "", "user", name, 0, ("x",))])])
    assert any(word.term in grown.names for word in parse(f"did {written(name)} swim?").words)


@pytest.mark.parametrize("role", ["tool", "system", "developer"])
def test_the_name_of_what_is_no_person_is_no_speaker(role: str) -> None:
    assert extended([build([IndexedDocument(1, "a", "", role, "search", 0, ("x",))])]).names == {}


def test_few_messages_take_as_much_memory_as_they_need() -> None:
    said = [Said("a", f"the {number}. message of a short chat", minutes=number) for number in range(100)]
    assert extended(parts(documents(said), [100])).nbytes < 200 * len(said)
