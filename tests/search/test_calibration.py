"""Scores are how likely a hit answers: they can be compared between queries and sources."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Memory
from holdfast.search.calibration import BY_WORDS, WITH_MEANING, Calibration
from holdfast.types import Source
from tables import each

ALL = [*BY_WORDS.values(), *WITH_MEANING.values()]
FACTS = ("User likes tea", "The user has a bird called Kiki", "Lives in Porto since 2021")
SHARES = st.lists(st.floats(1e-9, 1), min_size=1, max_size=8)


@pytest.mark.slow
@each("used", ALL)
@given(shares=SHARES)
def test_probabilities_are_in_the_order_of_the_scores(used: Calibration, shares: list[float]) -> None:
    scores = np.array(sorted(shares, reverse=True))
    likely = used.probabilities(scores)
    assert np.all(np.diff(likely) <= 0)
    assert np.all((likely >= 0) & (likely < 1))
    assert used.scores(likely[:2]) == pytest.approx(scores[:2])


def test_one_score_tells_what_is_said_from_what_is_hardly_related(memory: Memory) -> None:
    for fact in FACTS:
        memory.remember(fact)
    said = [memory.recall(fact)[0].score for fact in FACTS]
    related = [hit.score for query in ("beverage", "zebra", "lisbon") for hit in memory.recall(query)]
    assert related
    assert max(related) < 0.2
    assert min(said) > 0.8
    assert [hit.text for hit in memory.recall(FACTS[0], min_score=0.2)] == [FACTS[0]]


@each(
    ("fact", "query"),
    [("I'm vegan.", "vegan"), ("Lisbon.", "Lisbon"), ("My cat is Kiki.", "cat kiki"), ("我吃素。", "吃素")],
)
def test_a_fact_in_its_own_words_alone_is_worth_showing(fact: str, query: str) -> None:
    with Memory(":memory:") as memory:
        memory.chat("c").append(role="user", content=fact)
        memory.remember(fact, kind="fact")
        for source in ("message", "record"):
            assert memory.recall(query, sources=[source], min_score=0.3)


def test_of_two_that_say_as_much_neither_is_as_likely_as_one_alone(memory: Memory) -> None:
    chat = memory.chat("c")
    chat.append(role="user", content="The ferry to Bergen leaves at nine.")
    memory.remember("The ferry to Bergen leaves at nine.", kind="fact")
    sources: tuple[Source, ...] = ("message", "record")
    alone = [memory.recall("ferry to Bergen", sources=[source])[0].score for source in sources]
    memory.remember("The ferry from Bergen leaves at six.", kind="fact")
    chat.append(role="user", content="The ferry from Bergen leaves at six.")
    for source, before in zip(sources, alone, strict=True):
        both = memory.recall("ferry to Bergen", sources=[source])
        assert both[0].score < 0.8 * before
        assert both[:1] == memory.recall("ferry to Bergen", sources=[source], limit=1)


def test_the_words_of_a_question_that_ask_lower_no_score(memory: Memory) -> None:
    asked = {
        "我对什么过敏？": "我对花生过敏，吃了会起疹子。",
        "妈妈什么时候过生日？": "妈妈的生日是五月十二号，她喜欢兰花。",
        "数据库密码在哪里？": "服务器的数据库密码放在保险箱里。",
        "我什么时候去的西湖？": "上个月去了杭州西湖，雨很大。",
        "猫の名前は何ですか？": "うちの猫の名前はミケです。",
        "会議はいつ始まりますか？": "会議は水曜日の三時に始まる。",
    }
    for n, note in enumerate(asked.values()):
        memory.chat(f"c{n}").append(role="user", content=note)
    for query, note in asked.items():
        assert memory.recall(query, min_score=0.3)[0].text == note


def test_a_word_that_is_nowhere_lowers_the_score(memory: Memory) -> None:
    memory.chat("c").append(role="user", content="The ferry to Bergen leaves at nine.")
    memory.remember("The ferry is blue.", kind="fact")
    for source in ("message", "record"):
        scores = [
            memory.recall(query, sources=[source])[0].score
            for query in ("ferry", "ferry quasar", "ferry quasar gluon")
        ]
        assert scores == sorted(scores, reverse=True)
        assert scores[0] > 2 * scores[1]
