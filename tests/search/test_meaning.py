"""Recall by meaning: what means the same is found, what has no vector loses nothing, failures are said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from threading import Event

import pytest

from embedders import letters, meaning
from holdfast import Hits, InvalidInput, Learning, Limit, Memory
from holdfast.llm.embedding import Embed
from stored_texts import whole

QUIET = Learning(kinds=())
FILLER = "The weather was fine all week.", "We painted the old fence.", "The train left late again."
KEY = "sk-proj-abcdEFGH1234ijkl5678MNOP9012"


@pytest.fixture
def near(location: str) -> Iterator[Memory]:
    """Open a memory with an embedder of some words, and fill it."""
    with Memory(location, user="ada", admin=True, embed=meaning, learning=QUIET) as memory:
        fill(memory)
        memory.learning.work()
        yield memory


def fill(memory: Memory) -> None:
    memory.chat("kitchen").append(role="user", content="I like tea.")
    for n, text in enumerate(FILLER):
        memory.chat(f"other {n}").append(role="user", content=text)
    memory.remember("User has a dog")
    memory.remember("User lives in Kiel")
    memory.remember("User runs a marathon each year")


def with_embedder(embed: Embed, learning: Learning = QUIET) -> Memory:
    return Memory(":memory:", user="ada", embed=embed, learning=learning)


def texts(hits: Hits) -> list[str]:
    return [hit.text for hit in hits]


def test_other_words_for_the_same_are_found(near: Memory) -> None:
    hits = near.recall("bevvy")
    assert texts(hits) == ["I like tea."]
    assert dict(hits[0].why) == {"meaning": 1.0}
    assert str(hits[0].why) == "meaning 100%"
    assert hits.degraded is None
    assert texts(near.recall("Any pets?"))[0] == "User has a dog"
    (hit, *_) = near.recall("tea")
    assert hit.why["meaning"] > 0 < hit.why["words"]
    assert sum(hit.why.values()) == pytest.approx(1)
    assert hit.why.words == ("tea",)


def test_a_message_is_found_by_its_words_at_once_and_by_its_meaning_after_the_job(near: Memory) -> None:
    near.chat("new").append(role="user", content="Let us enter the race.")
    (before,) = near.recall("race", sources=["message"])
    assert "meaning" not in before.why
    near.learning.work()
    (after, *_) = near.recall("race", sources=["message"])
    assert after.why["meaning"] > 0
    assert after.score > before.score


def test_fresh_embeds_what_is_missing_first(near: Memory) -> None:
    near.chat("new").append(role="user", content="Let us enter the race.")
    hits = near.recall("marathon", fresh=True)
    assert "Let us enter the race." in texts(hits)
    assert hits.degraded is None


def test_fresh_says_what_it_could_not_embed() -> None:
    limited = Learning(kinds=(), limits={"embed": Limit(calls=0)})
    with with_embedder(meaning, limited) as memory:
        fill(memory)
        hits = memory.recall("tea", fresh=True)
        assert texts(hits) == ["I like tea."]
        assert "limit of 0 calls" in str(hits.degraded)


def test_a_memory_where_nothing_is_embedded_says_so() -> None:
    with with_embedder(meaning) as memory:
        assert memory.recall("tea").degraded is None  # there is nothing
        fill(memory)
        assert "embedded nothing here" in str(memory.recall("tea").degraded)


def test_fresh_needs_an_embedder(quick: Memory) -> None:
    quick.chat("a").append(role="user", content="tea")
    with pytest.raises(InvalidInput, match="no embedder"):
        quick.recall("tea", fresh=True)
    hits = quick.recall("tea")
    assert (type(hits), hits.degraded) == (Hits, None)


def test_a_weight_of_all_goes_by_meaning_first(near: Memory) -> None:
    near.chat("new").append(role="user", content="Beverage, bevvy: a word that I never liked.")
    assert texts(near.recall("bevvy", meaning=0))[0].startswith("Beverage")
    assert texts(near.recall("bevvy", meaning=1))[0] == "I like tea."
    for weight in (-0.1, 1.1, True, "1", float("nan")):
        with pytest.raises(InvalidInput, match="meaning"):
            near.recall("tea", meaning=weight)  # type: ignore[arg-type]  # what a program may pass


# Filters and scopes


def test_filters_hold_for_what_is_near(near: Memory) -> None:
    assert texts(near.recall("bevvy", sources=["record"])) == []
    assert texts(near.recall("bevvy", chat="other 1")) == []
    assert texts(near.recall("bevvy", roles=["assistant"])) == []
    assert texts(near.recall("bevvy", until=datetime(2000, 1, 1, tzinfo=UTC))) == []
    assert texts(near.recall("pet", kinds=["profile"])) == []
    assert texts(near.recall("pet", kinds=["fact"])) == ["User has a dog"]
    assert texts(near.recall("pet", per_kind=1)) == ["User has a dog"]
    assert texts(near.recall("bevvy", limit=0)) == []
    assert texts(near.recall("bevvy", min_score=0.99)) == []


def test_what_another_agent_has_is_not_near(near: Memory) -> None:
    near.scoped(agent="coach").chat("secret").append(role="user", content="A pet and a bevvy.")
    near.scoped(agent="coach").remember("User has a pet snake")
    near.learning.work()
    for query in ("bevvy", "pet"):
        assert "snake" not in whole(near.scoped(agent="cook").recall(query))
        assert "A pet and" not in whole(near.scoped(agent="cook").recall(query))
        assert "A pet and" in whole(near.scoped(agent="coach").recall(query))
    assert near.scoped(user="eve").recall("bevvy") == []


def test_what_was_replaced_or_retracted_is_not_near(near: Memory) -> None:
    (hit,) = near.recall("pet", sources=["record"])
    near.replace(hit.id, "User collects stamps")
    assert near.recall("pet", sources=["record"]) == []
    (hit, *_) = near.recall("race", sources=["record"])
    near.retract(hit.id)
    assert near.recall("race", sources=["record"]) == []


def test_an_earlier_version_goes_by_words_alone(near: Memory) -> None:
    at = near.at(near.version())
    assert texts(at.recall("bevvy")) == []
    assert [(hit.text, hit.score) for hit in at.recall("tea")] == [
        (hit.text, hit.score) for hit in near.recall("tea", meaning=0)
    ]
    assert "meaning" not in str([hit.why for hit in at.recall("tea")])


def test_an_erasure_by_another_process_is_seen(shared_location: str) -> None:
    with (
        Memory(shared_location, user="ada", embed=meaning, learning=QUIET) as one,
        Memory(shared_location, user="ada", embed=meaning, learning=QUIET) as other,
    ):
        fill(one)
        one.learning.work()
        assert other.recall("bevvy")
        one.erase(chat="kitchen", messages=1)
        assert other.recall("bevvy") == []


def test_records_of_a_chat_are_found_beside_nearer_ones_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.search.meaning.DEPTH", 2)
    with with_embedder(meaning) as memory:
        for n in range(60):
            memory.remember(f"User met dog {n}", "finding", merge=None)
        for n in range(4):
            memory.remember(f"User likes tea {n}", "finding", chat="a", merge=None)
        memory.remember("User likes tea, more tea, and a dog", "finding", chat="b", merge=None)
        memory.learning.work()
        assert [hit.chat for hit in memory.recall("bevvy", sources=["record"], chat="b")] == ["b"]


# An embedder that fails


def failing(_: Sequence[str]) -> list[list[float]]:
    raise ConnectionRefusedError(KEY)


def test_an_embedder_that_fails_leaves_words_alone_and_the_result_says_so(quick: Memory) -> None:
    with with_embedder(failing) as memory:
        fill(memory)
        fill(quick)
        hits = memory.recall("tea")
        assert [(hit.text, hit.score) for hit in hits] == [
            (hit.text, hit.score) for hit in quick.recall("tea")
        ]
        assert "cannot be reached" in str(hits.degraded)
        assert KEY not in str(hits.degraded)
        assert memory.recall("tea", meaning=0).degraded is None


def test_an_embedder_that_is_too_slow_leaves_words_alone() -> None:
    released = Event()

    def slow(texts: Sequence[str]) -> list[list[float]]:
        released.wait(60)
        return meaning(texts)

    with with_embedder(slow, Learning(kinds=(), query_patience=0.01)) as memory:
        fill(memory)
        hits = memory.recall("tea")
        released.set()
        assert texts(hits) == ["I like tea."]
        assert "did not answer within 0.01 s" in str(hits.degraded)


def test_an_embedder_that_knows_no_word_of_the_query_says_so(near: Memory) -> None:
    hits = near.recall("fence")
    assert texts(hits) == ["We painted the old fence."]
    assert "knows no word" in str(hits.degraded)


def test_an_embedder_of_another_size_says_so(shared_location: str) -> None:
    with Memory(shared_location, user="ada", embed=meaning, learning=QUIET) as memory:
        fill(memory)
        memory.learning.work()

    def other(texts: Sequence[str]) -> list[list[float]]:
        return letters(texts)

    other.__qualname__ = "meaning"
    with Memory(shared_location, user="ada", embed=other, learning=QUIET) as memory:
        hits = memory.recall("tea")
        assert texts(hits) == ["I like tea."]
        assert "changed the size" in str(hits.degraded)


def test_a_limit_of_queries_leaves_words_alone() -> None:
    with with_embedder(meaning, Learning(kinds=(), limits={"recall": Limit(calls=1)})) as memory:
        fill(memory)
        memory.learning.work()
        assert memory.recall("bevvy")
        assert memory.recall("bevvy").degraded is None  # its vector is known
        assert "limit of 1 call" in str(memory.recall("pet").degraded)


def test_queries_are_metered_and_masked() -> None:
    asked: list[str] = []

    def embed(texts: Sequence[str]) -> list[list[float]]:
        asked.extend(texts)
        return meaning(texts)

    with with_embedder(embed) as memory:
        fill(memory)
        memory.recall(f"what is {KEY} for tea")
        lines = {line.purpose: line.calls for line in memory.learning.usage().lines}
        assert lines == {"recall": 1}
        assert KEY not in str(asked)
        memory.recall("tea " * 5_000)
    assert len(asked[-1]) == 2_000, "its beginning"


def test_nothing_is_embedded_that_is_not_compared() -> None:
    with with_embedder(failing) as memory:
        fill(memory)
        for fresh in (False, True):
            with pytest.raises(InvalidInput):
                memory.recall(" ", fresh=fresh)
        assert memory.recall("tea", limit=0) == []
        assert memory.chat("kitchen").prompt(4_000, query="tea", limit=0).hits == ()
        assert texts(memory.at(memory.version()).recall("tea", fresh=True)) == ["I like tea."]
        with pytest.raises(InvalidInput):
            memory.recall("tea", fresh=True, meaning=2)
        assert memory.learning.usage().lines == ()


# Real embedders


def test_what_was_erased_is_not_near(near: Memory) -> None:
    assert near.recall("bevvy")
    near.erase(chat="kitchen", messages=1)
    assert near.recall("bevvy") == []


def test_what_another_user_has_is_not_near(near: Memory) -> None:
    assert near.scoped(user="eve").recall("bevvy") == []
