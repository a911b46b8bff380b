"""A session as text for somebody who reviews it."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from compaction_chats import cost, fresh, minute, tell, words

from holdfast import Memory, Message
from tables import each


def said(text: str) -> list[int]:
    """Give the numbers of the messages that a review shows word for word."""
    lines = text.rpartition("<conversation>\n")[2].splitlines()
    return [n for n in range(1, 200) if any(words(n, 50) in line for line in lines)]


@each(
    ("options", "shown"),
    [
        *(({"since": minute(n)}, range(n + 1, 13)) for n in (1, 12)),
        *(({"after": n}, range((n or 0) + 1, 13)) for n in (None, 0, 12, 99)),
        ({"since": minute(3).replace(tzinfo=None)}, range(4, 13)),
        ({"since": minute(2), "after": 9}, [10, 11, 12]),
        *(({"limit": limit}, range(13 - min(limit, 12), 13)) for limit in (0, 3, 200)),
        ({"budget": 0}, [12]),
        ({"budget": 1, "limit": 0}, []),
        ({"budget": 10**9, "limit": 3}, [10, 11, 12]),
    ],
)
def test_what_is_shown_and_how_many_messages_are_left_out(options: dict[str, Any], shown: Any) -> None:
    with Memory(":memory:", user="ada") as memory:
        chat = memory.chat("c")
        tell(chat, 12)
        text = chat.review(**options)
        assert said(text) == list(shown)
        assert text == chat.review(**options)
        assert bool(text) is bool(list(shown))
        assert chat.review(chat.stats().newest) == ""
        wanted = {name: value for name, value in options.items() if name in ("since", "after")}
        left = len(said(chat.review(**wanted))) - len(shown) if text else 0
        told = {0: "", 1: "(1 message is left out"}.get(left, f"({left} messages are left out")
        before = text.partition("<conversation>")[0]
        assert before.startswith(
            f"{told} here: neither shown below nor covered by a summary.)" if told else ""
        )
        assert bool(before) is bool(told)


# Within a budget


def test_a_budget_keeps_the_newest_that_fit_as_they_are_written(memory: Memory) -> None:
    chat = memory.chat("c")
    tell(chat, 12)
    lines = chat.review().rpartition("<conversation>\n")[2].splitlines()[1:-1]
    sizes = list(accumulate(cost(f"{line}\n") for line in reversed(lines)))
    for many in range(1, 12):
        assert said(chat.review(budget=sizes[many - 1])) == list(range(13 - many, 13))
        assert said(chat.review(budget=sizes[many] - 1)) == list(range(13 - many, 13))
    assert said(chat.review(budget=sizes[11], limit=3)) == [10, 11, 12]
    assert said(chat.review(after=9, budget=sizes[1])) == [11, 12]


def test_what_has_no_words_costs_nothing() -> None:
    chat = fresh()
    tell(chat, 3)
    chat.append(Message("user", f"data:image/png;base64,{'iVBORw0KGgoAAAANSUhEUgAA' * 40}", at=minute(4)))
    assert said(chat.review(budget=0)) == said(chat.review(budget=1)) == [3]
    assert chat.review(minute(3)) == "", "nothing of it can be put into words"


def test_a_budget_is_of_what_is_written_not_of_what_is_stored() -> None:
    chat = fresh()
    tell(chat, 1)
    chat.append(Message("tool", "a long result " * 5_000, at=minute(2)))
    tell(chat, 1, first=3)
    assert said(chat.review(budget=500)) == [1, 3]
