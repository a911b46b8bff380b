"""How messages are referred to: what is written is read again, and nothing else is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.types import MAX_COUNT
from holdfast.types.references import Reference, read_reference, write_reference
from tables import each

numbers = st.integers(1, MAX_COUNT)


@given(chat=st.text(), first=numbers, last=numbers)
def test_what_is_written_is_read_again(chat: str, first: int, last: int) -> None:
    first, last = sorted((first, last))
    assert read_reference(write_reference(chat, first, last)) == Reference(chat, first, last)
    assert read_reference(write_reference(chat, first)) == Reference(chat, first, first)


@given(text=st.text(alphabet="a#-0123456789\n٣", max_size=12))
def test_what_is_read_is_written_alike(text: str) -> None:
    read = read_reference(text)
    if read is None:
        return
    assert read_reference(write_reference(*read)) == read
    assert 1 <= read.first <= read.last


@each(
    "text",
    ["", "#", "monday", "monday#", "monday#0", "monday#7-3", "monday#-3", "monday#3-", "monday#three",
        "monday#٣",
     "monday# 3", "monday#3\n", f"monday#{MAX_COUNT + 1}", "monday#" + "9" * 5_000, "monday-3"],
)  # fmt: skip
def test_what_is_no_reference(text: str) -> None:
    assert read_reference(text) is None
