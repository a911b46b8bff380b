from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Hits, InvalidInput, Memory
from holdfast.search import bm25, rank, weights
from holdfast.search.calibration import BY_WORDS
from holdfast.search.columns import MessageColumns
from holdfast.text import analyze
from recall_corpora import START, Said, tell
from soak import cases
from tables import each

pytest_plugins = ["recall_fixtures"]

# The words of these corpora are no stop words, and one time word among them.
PLAIN = "berlin marathon tokyo garden piano coffee bicycle lantern yesterday ada bob".split()
ACTORS = ("Ada", "Bob", "Eve")
LIKE_THE_REFERENCE = weights.RankWeights(
    k1=0.9,
    b=0.75,
    passage=0.0,
    context=0.5,
    context_words=float("inf"),
    before=0.5,
    after=0.5,
    two_before=0.3,
    two_after=0.15,
    session=0.6,
    session_k1=1.5,
    session_b=0.5,
    speaker=1.0,
    name_as_word=0.25,
    time=0.3,
    date=0.3,
    conclusion=0.0,
    output=0.0,
    later=0.0,
    related=0.0,
    substance=0.0,
)


# Against the reference


@pytest.fixture(scope="module")
def reference(shared_data: Path) -> Any:
    """Load the reference of the lexical score."""
    path = shared_data.parent / "spec" / "lexical_reference.py"
    if not path.is_file():
        pytest.skip(f"no reference to compare with at {path}")
    spec = importlib.util.spec_from_file_location("lexical_reference", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def words_of(text: str) -> list[str]:
    """Take a text apart as the reference is meant to: the stems of the words that are no stop words."""
    words = [word for token in analyze.tokens(text) for word in analyze.split(token)]
    return [analyze.normal(word) for word in words if word not in analyze.STOP_WORDS]


@st.composite
def sessions(draw: st.DrawFn) -> list[list[Said]]:
    """Make chats of which each is one block; a day lies between them, and a minute between messages."""
    lengths = draw(st.lists(st.integers(1, 9), min_size=1, max_size=6))
    text = st.lists(st.sampled_from(PLAIN), min_size=1, max_size=9).map(" ".join)
    return [
        [
            Said(
                chat=f"chat{number}",
                text=draw(text),
                name=draw(st.sampled_from(ACTORS)),
                minutes=1440 * number + n,
            )
            for n in range(length)
        ]
        for number, length in enumerate(lengths)
    ]


def july_fit(said: Said, day: int | None) -> float:
    """Say how well the time of a message fits "July 2022" or a day of it."""
    at = said.message.at
    assert at is not None
    if (at.year, at.month) != (2022, 7):
        return 0.0
    if day is None:
        return 1.0
    return {0: 1.0, 1: 0.7, 2: 0.7, 3: 0.7}.get(abs(at.day - day), 0.4)


@pytest.mark.slow
@settings(max_examples=cases(37, 450))
@given(
    chats=sessions(),
    asked=st.lists(st.sampled_from(PLAIN), min_size=1, max_size=6),
    when=st.booleans(),
    dated=st.sampled_from(["", " in July 2022", " on 3 July 2022"]),
)
def test_scores_agree_with_the_reference(
    reference: Any,
    spaces: Iterator[Memory],
    chats: list[list[Said]],
    asked: list[str],
    when: bool,
    dated: str,
) -> None:
    query = ("when " if when else "") + " ".join(asked) + dated
    told = [said for chat in chats for said in chat]
    named = {actor for actor in ACTORS if actor.lower() in asked and any(said.name == actor for said in told)}
    expected, plain = (reference.LexIndex(words_of, lam=lam) for lam in (0.6, 0.0))
    for session, chat in enumerate(chats):
        for said in chat:
            assert said.name is not None
            for lex in (expected, plain):
                lex.add(said.text, session, said.name, float("yesterday" in said.text))
    if not named:
        expected.names.clear()  # the reference counts a name for less although nobody is asked about
    fit = np.array([july_fit(said, 3 if "3" in dated else None) for said in told]) if dated else None
    totals = expected.scores(query, actors=tuple(named), is_when=when, date_score=fit)
    matching = plain.scores(query) > 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weights, "WEIGHTS", LIKE_THE_REFERENCE)
        patch.setenv("HOLDFAST_KERNEL", "0")
        # The reference knows of no copies, raises no message above another, and finds none by its day alone.
        patch.setattr(rank, "first_of_equals", lambda same, scores: np.ones(len(same), bool))
        patch.setattr(rank, "raise_lenders", lambda scores, *others: scores)
        patch.setattr(rank, "_OF_THE_DAY", 0.0)
        memory = next(spaces)
        tell(memory, told)
        hits = memory.recall(query, limit=1000)
    numbers = {(said.chat, seq): n for n, (said, seq) in enumerate(numbered(chats))}
    hits = Hits(hit for hit in hits if not dated or matching[numbers[hit.chat, hit.seq]])
    places = [numbers[hit.chat, hit.seq] for hit in hits]
    assert sorted(places) == list(np.flatnonzero(matching))
    if hits:
        ratios = totals[places] / BY_WORDS["message"].scores(np.array([hit.score for hit in hits]))
        np.testing.assert_allclose(ratios, ratios[0], rtol=1e-6)


def numbered(chats: list[list[Said]]) -> Iterator[tuple[Said, int]]:
    for chat in chats:
        yield from ((said, seq) for seq, said in enumerate(chat, 1))


@pytest.mark.slow
@settings(max_examples=cases(25, 300))
@given(
    chats=sessions(),
    chosen=st.randoms(use_true_random=False),
    asked=st.lists(st.sampled_from(PLAIN), min_size=1, max_size=6),
    extra=st.sampled_from(["", " when", " in July 2022", " did you"]),
)
def test_the_few_best_are_those_of_all_to_the_last_bit(
    spaces: Iterator[Memory],
    chats: list[list[Said]],
    chosen: Random,
    asked: list[str],
    extra: str,
) -> None:
    space, query = next(spaces), " ".join(asked) + extra
    interleaved = [said for chat in chats for said in chat]
    chosen.shuffle(interleaved)
    tell(space, interleaved)
    best = [(hit.id, hit.score) for hit in space.recall(query, limit=1000)]
    for limit in (1, 2, 3, 7):
        assert [(hit.id, hit.score) for hit in space.recall(query, limit=limit)] == best[:limit]
    within = [hit.id for hit in space.recall(query, limit=1000, chat="chat0")]
    assert [hit.id for hit in space.recall(query, limit=2, chat="chat0")] == within[:2]


# What raises a score


WALK = "a walk in the garden"


@each(
    ("query", "told", "first"),
    [
        ("berlin marathon", [*(Said(f"common{n}", "berlin is large") for n in range(9)),
                             Said("rare", "marathon is large")], "rare"),
        ("berlin marathon", [Said("one", "berlin berlin berlin"), Said("both", "berlin marathon"),
                             Said("two", "marathon garden")], "both"),
        ("where did Bob walk?", [Said(name, WALK, name=name) for name in ACTORS], "Bob"),
        ("my garden", [Said("a", "the garden", "assistant"), Said("b", "the garden")], "b"),
        ("did you see the garden", [Said("a", "the garden"), Said("b", "the garden", "assistant")], "b"),
        ("when did they walk in the garden?", [Said("a", WALK), Said("b", f"{WALK} yesterday")], "b"),
        ("the garden in August", [Said("a", WALK), Said("b", WALK, minutes=50_000)], "b"),
        ("the garden in July 2022", [Said("a", WALK, minutes=50_000), Said("b", WALK)], "b"),
        ("when is the berlin marathon", [Said("a", "the berlin marathon is in september"),
                                         Said("b", "a marathon", minutes=5)], "a"),
    ],
)  # fmt: skip
def test_what_a_question_points_at_comes_first(
    spaces: Iterator[Memory], query: str, told: list[Said], first: str
) -> None:
    memory = next(spaces)
    tell(memory, told)
    assert memory.recall(query)[0].chat == first


def test_a_neighbour_of_an_answer_is_found_too(spaces: Iterator[Memory]) -> None:
    memory = next(spaces)
    tell(memory, [Said("a", "where is the marathon"), Said("a", "over there"), Said("b", "hello")])
    hits = memory.recall("marathon")
    assert [hit.text for hit in hits] == ["where is the marathon", "over there"]
    assert hits[1].why.words == ()


def test_a_pause_ends_the_neighbourhood(spaces: Iterator[Memory]) -> None:
    memory = next(spaces)
    tell(memory, [Said("a", "where is the marathon"), Said("a", "over there", minutes=361)])
    assert [hit.text for hit in memory.recall("marathon")] == ["where is the marathon"]


def test_the_search_of_a_space_does_not_depend_on_other_spaces(spaces: Iterator[Memory]) -> None:
    alone, busy = next(spaces), next(spaces)
    told = [Said("a", "berlin marathon"), Said("b", "berlin garden")]
    tell(alone, told)
    before = [hit.score for hit in alone.recall("berlin garden")]
    tell(busy, [Said("a", "berlin")] * 50)
    assert [hit.score for hit in alone.recall("berlin garden")] == before


# What is said later


def test_of_equal_messages_of_a_chat_the_later_comes_first(spaces: Iterator[Memory]) -> None:
    memory = next(spaces)
    told = ["So we name the file restore.db.", "I see.", "We name the file sessions.db."]
    tell(memory, [Said("a", text, minutes=700 * n) for n, text in enumerate(told)])
    # People who talk to each other do not work on something that replaces what was.
    assert not any("later" in hit.why for hit in memory.recall("what do we name the file?"))
    memory.chat("a").append(role="assistant", content="Done.")
    best = memory.recall("what do we name the file?")[0]
    assert best.text == "We name the file sessions.db."
    assert "later" in best.why
    tell(memory, [Said("b", "the lantern is blue"), Said("b", "the garden is green", minutes=700)])
    memory.chat("b").append(role="assistant", content="Done.")
    assert not any("later" in hit.why for hit in memory.recall("lantern garden"))


def test_the_latest_is_preferred_over_chats_where_it_is_asked_for(space: Memory) -> None:
    tell(space, [Said("a", "We keep it in one file."), Said("b", "We keep it in two files.", minutes=9_000)])
    assert [hit.chat for hit in space.recall("where do we keep it?")] == ["a", "b"]
    assert [hit.chat for hit in space.recall("where do we keep it?", prefer="latest")] == ["b", "a"]
    with pytest.raises(InvalidInput):
        # A wrong value on purpose.
        space.recall("where", prefer="oldest")  # type: ignore[arg-type]


@settings(max_examples=cases(25, 300))
@given(
    messages=st.lists(
        st.tuples(st.sampled_from(range(161, 200, 2)), st.integers(0, 5), st.integers(0, 2)),
        min_size=1,
        max_size=12,
    ),
    limit=st.integers(1, 12),
)
def test_what_is_raised_is_as_good_as_the_best_that_it_may_stand_for(
    messages: list[tuple[int, int, int]], limit: int
) -> None:
    columns = MessageColumns()
    columns.last = size = len(messages)
    columns.at[1 : size + 1] = [at for _, at, _ in messages]
    columns.chat[1 : size + 1] = [chat for _, _, chat in messages]
    columns.chats, columns.assisted = {(str(n), ""): n for n in range(3)}, np.ones(3, bool)
    docs, scores = np.arange(1, size + 1), np.array([score for score, _, _ in messages]) / 200
    before_it = rank.Scores(docs, scores, {}, {}, {}, 1.0, lambda _: [], np.ones((1, size), bool))
    after = rank.raise_later(before_it, columns, limit, "chat")
    floor = sorted(scores, reverse=True)[min(limit, size) - 1]
    for y, raised in enumerate(after.total):
        before = [
            x
            for x in range(size)
            if messages[x][2] == messages[y][2] and (messages[x][1], x) < (messages[y][1], y)
        ]
        reached = [after.total[x] for x in before if scores[y] <= after.total[x] <= scores[y] / 0.9]
        if scores[y] >= floor:
            assert raised == pytest.approx(max(reached, default=scores[y]))
        assert scores[y] <= raised <= scores[y] / 0.9 + 1e-9


# The best places of an array


@each("filled", [0.0, 0.01, 1.0])
@each("values", [1, 5, 1000])
@each("size", [0, 1, 40, 511, 512, 513, 2000, 5121])
def test_top_equals_sorting(size: int, values: int, filled: float) -> None:
    random = np.random.default_rng(size * values)
    for wanted in (0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 18, 19, 20, 100, 2**62):
        scores = random.integers(1, values + 1, size) / values * (random.random(size) < filled)
        order = np.argsort(-scores, kind="stable")
        best = [int(place) for place in order if scores[place] > 0][:wanted]
        assert [int(place) for place in bm25.top(scores, wanted)] == best


def test_top_finds_what_stands_behind_the_last_full_block() -> None:
    scores = np.zeros(512 * 20 + 3)
    scores[-1], scores[0] = 2.0, 1.0
    assert list(bm25.top(scores, 2)) == [512 * 20 + 2, 0]


def test_top_of_equal_scores_takes_the_first() -> None:
    assert list(bm25.top(np.ones(512 * 20), 3)) == [0, 1, 2]


# What a score is made of


@pytest.mark.slow
@settings(max_examples=cases(25, 300))
@given(
    chats=sessions(),
    asked=st.lists(st.sampled_from(PLAIN), min_size=1, max_size=6),
    extra=st.sampled_from(["", " in July 2022", " when was it", " did you"]),
)
def test_the_shares_of_a_score_are_positive_and_add_up_to_1(
    spaces: Iterator[Memory], chats: list[list[Said]], asked: list[str], extra: str
) -> None:
    memory = next(spaces)
    tell(memory, [said for chat in chats for said in chat])
    for hit in memory.recall(" ".join(asked) + extra, limit=1000):
        assert all(0 < share <= 1 for share in hit.why.values())
        assert sum(hit.why.values()) == pytest.approx(1, abs=1e-9)
        assert list(hit.why.values()) == sorted(hit.why.values(), reverse=True)


def test_the_time_that_the_tests_begin_with_is_in_july() -> None:
    assert (START.year, START.month) == (2022, 7)
