"""The core: a window shows the newest messages, within a budget, and never half of a tool use."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from holdfast.contract import Session
from holdfast.testing.case import (
    FullProvider,
    case,
    expect,
    fill,
    same,
    seqs,
    tokens_of,
    tool_use,
    unpaired,
)
from holdfast.types import Message, Window

BUDGETS = (0, 1, 20, 50, 75, 100, 150, 200, 400, 100_000)
TAILS = (0, 1, 2, 3, 4, 5, 8, 50)


def _windows(chat: Session) -> Iterator[tuple[int, int, Window, str]]:
    """Yield many budgets and tails with their windows and calls."""
    for budget, tail in product(BUDGETS, TAILS):
        yield budget, tail, chat.window(budget, tail=tail), f"`window({budget}, tail={tail})`"


@case("core")
def the_tail_is_always_shown(memory: FullProvider) -> None:
    """A window shows the newest `tail` messages, or the whole chat if shorter, whatever the budget."""
    chat = memory.chat("c")
    fill(chat, 5)
    for tail in (1, 3, 5):
        same(seqs(chat.window(1, tail=tail).messages)[-tail:], list(range(6 - tail, 6)), f"`tail={tail}`")
    same(seqs(chat.window(0, tail=50).messages), [1, 2, 3, 4, 5], "`tail=50`")


@case("core")
def a_budget_of_zero_shows_nothing(memory: FullProvider) -> None:
    """`window(0, tail=0)` shows no message."""
    chat = memory.chat("c")
    fill(chat, 4)
    same(chat.window(0, tail=0).messages, ())


@case("core")
def the_oldest_messages_are_left_out(memory: FullProvider) -> None:
    """A window whose budget is the tokens of the newest five messages shows exactly these."""
    chat = memory.chat("c")
    # The fifth but last is of the user, for providers whose windows begin with one.
    budget = tokens_of(fill(chat, 9)[-5:])
    same(seqs(chat.window(budget, tail=0).messages), [5, 6, 7, 8, 9])


@case("core")
def a_window_is_within_its_budget(memory: FullProvider) -> None:
    """A window shows the newest messages without a gap, and none beyond the tail that exceeds the budget."""
    chat = memory.chat("c")
    fill(chat, 9)
    for budget, tail, window, call in _windows(chat):
        shown = seqs(window.messages)
        same(shown, list(range(10 - len(shown), 10)), call)
        expect(len(shown) >= min(tail, 9), f"{call} shows {len(shown)} messages.")
        expect(window.tokens <= budget or len(shown) <= tail, f"{call} has {window.tokens} tokens.")


@case("core")
def a_window_accounts_for_every_message(memory: FullProvider) -> None:
    """A window has its budget, the tokens that it shows, and the messages and tokens that it leaves out."""
    chat = memory.chat("c")
    total = tokens_of(fill(chat, 9))
    for budget in BUDGETS:
        window = chat.window(budget, tail=2)
        same(window.budget, budget, "`budget`")
        same(window.tokens, tokens_of([*window.messages, *window.summaries]), "`tokens`")
        left_out = sum(omission.messages for omission in window.omitted)
        same(left_out, 9 - len(window.messages), "`omitted` messages")
        same(tokens_of(window.omitted), total - window.tokens, "`omitted` tokens")


def _check_pairs(chat: Session) -> None:
    """Check that windows of a chat show each call with its results, or neither, and the tail."""
    length = chat.stats().messages
    for _, tail, window, call in _windows(chat):
        same(unpaired(window.messages), [], f"Calls and results apart in {call}")
        wanted = range(length + 1 - min(tail, length), length + 1)
        expect(set(wanted) <= set(seqs(window.messages)), f"{call} does not show the tail.")


@case("core")
def a_call_is_shown_with_its_results(memory: FullProvider) -> None:
    """A window shows each tool call with its results, or neither."""
    chat = memory.chat("c")
    for n in range(1, 5):
        chat.append(tool_use(n, f"call-{n}", f"other-{n}"))
    _check_pairs(chat)


@case("core")
def ids_of_calls_may_repeat(memory: FullProvider) -> None:
    """A result belongs to the nearest call before it with its id: many models use `call_0` in every turn."""
    chat = memory.chat("c")
    for n in range(1, 5):
        chat.append(tool_use(n, "call_0", "call_1"))
    _check_pairs(chat)


@case("core")
def a_result_may_be_appended_later(memory: FullProvider) -> None:
    """A call and its results belong together also if other messages are appended between them."""
    chat = memory.chat("c")
    for n in range(1, 4):
        question, call, result, answer = tool_use(n, "call_0")
        for message in (question, call, Message("user", "Hurry up."), result, answer):
            chat.append([message])
    _check_pairs(chat)
