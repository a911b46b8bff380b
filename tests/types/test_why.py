"""How the reasons for a hit read and print."""

from holdfast.types import Why


def test_a_share_that_would_read_as_nothing_is_not_printed() -> None:
    why = Why({"session": 0.296, "words": 0.7, "later": 0.004}, ("tea",))
    assert (str(why), repr(why)) == ("words 70% (tea), session 30%", f"Why({why})")
    assert (len(why), why["words"], "date" in why, dict(why)["later"]) == (3, 0.7, False, 0.004)


def test_words_are_printed_however_little_they_count() -> None:
    assert str(Why({"meaning": 0.999, "words": 0.001}, ("tea",))) == "meaning 100%, words 0% (tea)"
