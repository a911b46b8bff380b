from __future__ import annotations

from holdfast.search.query import parse
from holdfast.text import analyze
from holdfast.text.synonyms import _table, related

TABLE = {head: related(head) for head in _table()}


def test_a_word_leads_to_those_that_answers_use() -> None:
    assert set(related(analyze.normal("siblings"))) == {"brother", "sister", "twin"}
    assert related("lantern") == related("") == related("東京") == ()
    assert "sibl" not in related("twin")


def test_no_stop_word_is_related_to_anything() -> None:
    """They would never be looked up, or stand in nearly every message."""
    stops = {analyze.normal(word) for word in analyze.STOP_WORDS}
    assert not {head for head in TABLE if head in stops}
    for head, words in TABLE.items():
        assert stops.isdisjoint(words)
        assert head not in words
        assert len(set(words)) == len(words)


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
