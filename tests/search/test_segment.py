from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_columns import documents

from holdfast.search.segment import BadSegment, IndexedDocument, Segment, build, merge
from holdfast.text import analyze
from recall_corpora import Said, conversations
from soak import cases
from tables import each


def doc(number: int, *passages: str, output: str = "") -> IndexedDocument:
    return IndexedDocument(number, "a", "", "user", "", 0, passages, output)


SAMPLE = build([doc(5, "berlin marathon berlin"), doc(6, "the marathon"), doc(7, "http_header")])
SEVERAL = build([doc(1, "berlin", "the marathon", output="tokyo marathon"), doc(2, "tokyo")])


# Postings


@pytest.mark.parametrize("segment", [SAMPLE, build([doc(1, "?!")])])
def test_an_unknown_term_has_none(segment: Segment) -> None:
    starts, ends = segment.spans(np.array([0, 1, 2**63, 2**64 - 1], np.uint64))
    assert list(starts) == list(ends) == [0, 0, 0, 0]


def test_a_word_that_stands_often_counts_255_times_at_most() -> None:
    assert list(build([doc(1, "berlin " * 1000)]).frequencies) == [255]


# Merging and storing


@settings(max_examples=cases(10, 90))
@given(conversations(60), st.integers(1, 2**40))
def test_a_stored_segment_reads_back_the_same(said: list[Said], first: int) -> None:
    segment = build(documents([*said, Said("a", "?!")], first))
    assert Segment.decode(segment.encode()).encode() == segment.encode()


def test_the_hash_of_a_term_is_the_same_on_every_machine() -> None:
    assert analyze.hash_term("berlin") == 15484060651203262527
    assert analyze.hash_term("東京") == 17306041243353289198


@each(
    "other",
    [
        build([doc(5, "berlin marathon berlin"), doc(6, "the marathon")]),
        build([doc(4, "berlin marathon berlin"), doc(5, "the marathon"), doc(6, "http_header")]),
        replace(SAMPLE, chats=(("b", ""),)),
        replace(SAMPLE, actors=(("tool", ""),)),
        replace(SAMPLE, frequencies=SAMPLE.frequencies + np.uint8(1)),
        replace(SAMPLE, at=SAMPLE.at + 1),
        replace(SAMPLE, output=SAMPLE.output + np.uint32(1)),
    ],
)
def test_segments_that_differ_in_anything_are_not_the_same(other: Segment) -> None:
    assert other != SAMPLE


# Hostile bodies


def reheaded(segment: Segment, **changes: object) -> bytes:
    """Change the header of a stored segment and leave the arrays alone."""
    body = segment.encode()
    size = int.from_bytes(body[8:16], "little")
    arrays = body[16 + size + -(16 + size) % 8 :]
    header = json.dumps(json.loads(body[16 : 16 + size]) | changes).encode()
    return body[:8] + len(header).to_bytes(8, "little") + header + b" " * (-(16 + len(header)) % 8) + arrays


def array(values: Any, like: np.ndarray[Any, Any]) -> Any:
    return np.array(values, like.dtype)


HOSTILE = {
    "a document out of range": replace(SAMPLE, places=SAMPLE.places + np.uint32(7)),
    "documents that do not rise": replace(
        SAMPLE,
        terms=SAMPLE.terms[:2],
        offsets=array([0, 2, 4], SAMPLE.offsets),
        places=array([0, 1, 2, 1], SAMPLE.places),
        frequencies=array([1, 1, 1, 1], SAMPLE.frequencies),
    ),
    "terms that do not rise": replace(SAMPLE, terms=SAMPLE.terms[::-1].copy()),
    "offsets that do not rise": replace(SAMPLE, offsets=SAMPLE.offsets[::-1].copy()),
    "offsets beyond the postings": replace(SAMPLE, offsets=array([*SAMPLE.offsets[:-1], 99], SAMPLE.offsets)),
    "offsets that begin late": replace(SAMPLE, offsets=array([1, *SAMPLE.offsets[1:]], SAMPLE.offsets)),
    "a chat out of range": replace(SAMPLE, chat=SAMPLE.chat + np.uint32(1)),
    "an actor out of range": replace(SAMPLE, actor=SAMPLE.actor + np.uint32(1)),
    "a time before the calendar": replace(SAMPLE, at=np.full_like(SAMPLE.at, -(2**63))),
    "a negative document": replace(SAMPLE, first=-5),
    "too few frequencies": replace(SAMPLE, frequencies=SAMPLE.frequencies[1:]),
    "a document without passages": replace(SEVERAL, passages=array([0, 3], SEVERAL.passages)),
    "passages that add up by overflow": replace(SEVERAL, passages=array([2**32 - 1, 4], SEVERAL.passages)),
    "too many words": replace(SAMPLE, words=np.append(SAMPLE.words, SAMPLE.words)),
}


@each("segment", HOSTILE.values())
def test_arrays_that_do_not_fit_together_are_refused(segment: Segment) -> None:
    with pytest.raises(BadSegment):
        Segment.decode(segment.encode())


WRONG: list[object] = [-1, 0, 2**31, 2**63, 2**200, 1e308, None, "x", [], {}, [["a"]], [1], True]


@each(
    ("field", "value"),
    [
        (field, value)
        for field in ("count", "terms", "postings", "passages", "chats", "actors")
        for value in WRONG
    ]
    + [("first", value) for value in WRONG[:2] + WRONG[6:10]],
)
def test_a_header_with_a_wrong_value_is_refused(field: str, value: object) -> None:
    with pytest.raises(BadSegment):
        Segment.decode(reheaded(SAMPLE, **{field: value}))


@each("size", [0, 1, 2**31, 2**63, 2**64 - 1])
def test_a_header_of_a_wrong_size_is_refused(size: int) -> None:
    body = SAMPLE.encode()
    with pytest.raises(BadSegment):
        Segment.decode(body[:8] + size.to_bytes(8, "little") + body[16:])


@each("header", [b"", b"7", b"[]", b"{}", b"\xff", b"{", b"[" * 200_000])
def test_a_header_that_is_something_else_is_refused(header: bytes) -> None:
    with pytest.raises(BadSegment):
        Segment.decode(SAMPLE.encode()[:8] + len(header).to_bytes(8, "little") + header)


def test_every_truncated_body_is_refused() -> None:
    body = SAMPLE.encode()
    for wrong in (*(body[:size] for size in range(len(body))), body + b"\x00"):
        with pytest.raises(BadSegment):
            Segment.decode(wrong)


@settings(max_examples=cases(75, 600))
@given(st.data())
def test_a_changed_byte_raises_nothing_but_bad_segment(data: st.DataObject) -> None:
    body = bytearray(SAMPLE.encode())
    for place in data.draw(st.lists(st.integers(0, len(body) - 1), min_size=1, max_size=4)):
        body[place] = data.draw(st.integers(0, 255))
    try:
        segment = Segment.decode(bytes(body))
    except BadSegment:
        return
    assert all(0 <= place < len(segment.words) for place in segment.places)
    assert sum(segment.passages) == len(segment.words)
    merge([segment, build([doc(segment.last + 1, "berlin")])])
