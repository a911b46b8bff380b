from __future__ import annotations

from holdfast.search.query import parse
from holdfast.text import analyze
from holdfast.text.synonyms import _table, related
from tables import each

TABLE = {head: related(head) for head in _table()}


def test_a_word_leads_to_those_that_answers_use() -> None:
    assert set(related(analyze.normal("siblings"))) == {"brother", "sister", "twin"}


def test_most_words_lead_nowhere() -> None:
    assert related("lantern") == ()


@each("word", ["", "東京", "4312", "sibling "])
def test_what_is_no_word_in_its_normal_form_leads_nowhere(word: str) -> None:
    assert related(word) == ()


def test_the_way_does_not_lead_back_by_itself() -> None:
    assert "sibl" not in related("twin")


def test_no_stop_word_is_related_to_anything() -> None:
    """They would never be looked up, or stand in nearly every message."""
    stops = {analyze.normal(word) for word in analyze.STOP_WORDS}
    assert not {head for head in TABLE if head in stops}
    assert not {(head, word) for head, words in TABLE.items() for word in words if word in stops}


def test_no_word_is_related_to_itself() -> None:
    assert not {head for head, words in TABLE.items() if head in words}


def test_no_word_is_listed_twice() -> None:
    assert not {head for head, words in TABLE.items() if len(set(words)) < len(words)}


def test_a_question_knows_the_related_words_of_each_of_its_words() -> None:
    (word,) = parse("Siblings?").words
    # Behind them are the stems of other languages, named as the word itself.
    assert word.related[:3] == tuple((analyze.hash_term(w), w) for w in ("brother", "sister", "twin"))
    assert {written for _, written in word.related[3:]} == {"siblings"}


def test_a_related_word_that_is_asked_for_itself_is_left_out() -> None:
    words = {
        word.written: [written for _, written in word.related] for word in parse("sibling or brother").words
    }
    assert "brother" not in words["sibling"]
