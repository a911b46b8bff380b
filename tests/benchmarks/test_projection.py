from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.projection import relation
from tables import each


@each(
    ("old", "new", "said"),
    [
        ("User lives in Berlin", "user lives in berlin!", "duplicate"),
        # The known weakness: the only word that differs is unknown, so it does not count.
        ("User lives in Berlin", "User lives in Lisbon", "update"),
        ("The database is PostgreSQL 14", "The database is PostgreSQL 16", "update"),
        ("User lives in Berlin", "Quarterly revenue doubled", "new"),
        ("User lives in Berlin", "", "new"),
        ("", "User lives in Berlin", "new"),
        ("alpha beta gamma delta epsilon zeta eta theta", "alpha beta gamma", "unsure"),
    ],
)
def test_two_texts(old: str, new: str, said: str) -> None:
    assert relation(old, new) == said


@given(st.text(max_size=60), st.text(max_size=60))
def test_it_never_raises_and_is_deterministic(old: str, new: str) -> None:
    assert relation(old, new) == relation(old, new)
