from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Memory, Message
from holdfast.errors import InvalidInput
from holdfast.search.query import is_searchable, parse
from holdfast.text.clean import clean
from recall_corpora import Said, found, tell
from soak import cases
from tables import each

pytest_plugins = ["recall_fixtures"]

TEXTS = [
    "the berlin marathon is near",
    "we gave 100% to foo_bar",
    'she said "it\'s not over" and left',
    "select name from users; drop table students",
    "a regular expression such as .* or [a-z]+",
    "To be, or not to be",
    "what is it",
]


@pytest.fixture
def told(space: Memory) -> Memory:
    for n, text in enumerate(TEXTS):
        tell(space, [Said(f"chat{n}", text)])
    return space


# All characters are plain text


@each(
    ("query", "first"),
    [
        ("100%", TEXTS[1]),
        ("%foo_bar%", TEXTS[1]),
        ('"berlin marathon"', TEXTS[0]),
        ("NEAR(berlin marathon)", TEXTS[0]),
        ("berlin OR (marathon NOT near)", TEXTS[0]),
        ("-berlin", TEXTS[0]),
        ("berlin*", TEXTS[0]),
        ("content:berlin", TEXTS[0]),
        ("{berlin} $berlin #berlin @berlin", TEXTS[0]),
        ("'; DROP TABLE messages; --", TEXTS[3]),
        ("%(users)s", TEXTS[3]),
        ("regular .* expression [a-z]+", TEXTS[4]),
        ("\\regular\\", TEXTS[4]),
        ("regular\x00expression", TEXTS[4]),
        ("regular\ud800expression", TEXTS[4]),
        ("\u202eregular\u200b \ufeffexpression", TEXTS[4]),
    ],
)
def test_every_character_of_a_query_is_plain_text(told: Memory, query: str, first: str) -> None:
    assert found(told.recall(query))[0] == first
    assert len(told.chats()) == len(TEXTS)


def test_a_wildcard_matches_nothing_but_itself(told: Memory) -> None:
    assert found(told.recall("ber% ber* ber_ b?rlin x")) == []
    assert told.verify().ok


@pytest.mark.slow
@settings(max_examples=cases(50, 600))
@given(query=st.text())
def test_any_text_is_answered_or_refused_as_blank(query: str) -> None:
    with Memory(":memory:") as memory:
        memory.chat("a").append(role="user", content="berlin")
        try:
            memory.recall(query)
        except InvalidInput:
            assert not is_searchable(query)
        else:
            assert is_searchable(query)


@pytest.mark.slow
@settings(max_examples=cases(25, 300))
@given(text=st.text(min_size=1))
def test_a_message_is_found_by_its_own_words(text: str) -> None:
    with Memory(":memory:") as memory:
        memory.chat("a").append(role="user", content="x " + text)
        if is_searchable(clean(text)):
            assert len(memory.recall(text)) == 1


# Queries with little or nothing in them


@each("query", ["", " ", "\n\t ", "?!", "%", "_", "'", "-- ;", "→", "、。", "\x00", "?" * 100_000])
def test_a_query_without_letters_and_digits_is_refused(quick: Memory, query: str) -> None:
    with pytest.raises(InvalidInput, match="no letters or digits"):
        quick.recall(query)


@each("query", ["🍕", "🍕🍕!", "… 🍕 ?"])
def test_a_lone_emoji_finds_what_has_it(quick: Memory, query: str) -> None:
    chat = quick.chat(query)
    chat.append(
        [
            {"role": "user", "content": "Ordered 🍕 for the team."},
            {"role": "assistant", "content": "Enjoy! 👍🏽"},
        ]
    )
    quick.remember("Friday is 🍕 day", "fact")
    both = {hit.text for hit in quick.recall(query) if hit.why.words}
    assert both == {"Ordered 🍕 for the team.", "Friday is 🍕 day"}
    assert [hit.seq for hit in chat.search(query)] == [1]
    assert quick.recall("👍")[0].text == "Enjoy! 👍🏽"
    assert quick.recall("🎉") == []


def test_beside_words_emoji_count_for_nothing(quick: Memory) -> None:
    chat = quick.chat("team")
    chat.append([Message("user", "Ordered 🍕 👍"), Message("user", "The bakery opens at nine.")])
    with_it, without = quick.recall("bakery 👍"), quick.recall("bakery")
    assert with_it[0].text == "The bakery opens at nine."
    assert [(hit.seq, hit.score) for hit in with_it] == [(hit.seq, hit.score) for hit in without]


def test_a_lone_emoji_recalls_nothing_unasked(quick: Memory) -> None:
    """A thumb up agrees; nobody who gives it asks for all thumbs of before."""
    quick.chat("old").append(role="user", content="Ship it 👍")
    assert quick.chat("new").prompt(2_000, "👍").hits == ()


@each("query", [None, 5, b"berlin", ["berlin"]])
def test_a_query_that_is_no_text_is_refused(quick: Memory, query: Any) -> None:
    with pytest.raises(InvalidInput, match="must be text"):
        quick.recall(query)


def test_stop_words_beside_others_do_not_count(told: Memory) -> None:
    assert found(told.recall("what is it with the berlin")) == [TEXTS[0]]


def test_stop_words_alone_find_messages_that_have_them_beside_others(told: Memory) -> None:
    assert TEXTS[0] in found(told.recall("the is"))


@each("query", ["to be or not to be", "To be?", "What is it?"])
def test_stop_words_alone_find_a_message_of_nothing_else(told: Memory, query: str) -> None:
    assert TEXTS[6 if "what" in query.lower() else 5] == found(told.recall(query))[0]


# Long ones


@pytest.fixture(scope="module")
def marathon() -> Iterator[Memory]:
    """Say one thing once, among many others."""
    with Memory(":memory:") as memory:
        tell(memory, [Said(f"chat{n}", f"tokyo {n} in 2022") for n in range(300)])
        tell(memory, [Said("b", "the berlin marathon")])
        yield memory


@pytest.mark.slow
@each(
    "query",
    [
        " ".join(f"w{n}" for n in range(16_000)) + " berlin",
        "1 may " * 16_000 + "berlin",
        " ".join(f"{1 + n % 28} june {1900 + n % 200}" for n in range(6_000)) + " berlin",
        "1" * 50_000 + " " * 50_000 + "berlin",
        "berlin " + "-x" * 50_000,
        "berlin " + "A" * 99_990 + "b",
        "berlin " + "e\u0301" * 50_000,
        "berlin " + "東京" * 50_000,
        "berlin " + "x'" * 50_000,
        "berlin " + "when did you " * 8_000,
        "mother family sibling vacation berlin " * 2_600,
    ],
)
def test_a_query_of_100_000_characters_is_answered(marathon: Memory, query: str) -> None:
    assert "the berlin marathon" in found(marathon.recall(query, limit=1000))


def test_a_question_with_many_dates_keeps_the_first() -> None:
    dates = parse(" ".join(f"{day} june {year}" for year in range(1990, 2020) for day in range(1, 29))).dates
    assert len(dates) == 16
    assert dates[0] == (1990, 6, 1)


def test_of_a_question_with_many_words_the_rarest_count(space: Memory) -> None:
    words = [f"w{n}" for n in range(300)]
    tell(space, [Said(f"chat{n}", " ".join(words)) for n in range(3)])
    tell(space, [Said("rare", "the lantern")])
    assert "the lantern" in found(space.recall(" ".join([*words, "lantern"])))


# Large messages


SIZE = cases(100_000, 1_000_000)


@pytest.mark.slow
@pytest.mark.scaled
@each("text", ["x" * 10 * SIZE, "ab-" * SIZE, "aB" * SIZE, "é" * SIZE])
def test_a_message_with_one_long_token_is_kept_and_found(text: str) -> None:
    with Memory(":memory:") as memory:
        memory.chat("a").append(role="user", content=f"lantern {text} berlin")
        assert len(memory.recall("lantern")) == len(memory.recall("berlin")) == 1


def test_a_long_token_is_found_by_itself(space: Memory) -> None:
    token = "sha256-" + "0123456789abcdef" * 32
    tell(space, [Said("a", f"the digest is {token}"), Said("b", "the digest is another")])
    assert space.recall(token)[0].chat == "a"


# A closed space
