"""The core: a window shows the newest messages, within a budget, and never half of a tool use."""

from __future__ import annotations

from holdfast.contract import Session
from holdfast.testing.case import Whole, case, expect, same, seqs, tell, tokens_of, tool_use, unpaired
from holdfast.types import Message

BUDGETS = (0, 1, 20, 50, 75, 100, 150, 200, 400, 100_000)
TAILS = (0, 1, 2, 3, 4, 5, 8, 50)


@case("core")
def the_tail_is_always_there(memory: Whole) -> None:
    """Expect the newest messages to be shown even if they do not fit."""
    chat = memory.chat("c")
    tell(chat, 5)
    for tail in (1, 3, 5):
        found = seqs(chat.window(1, tail=tail).messages)
        same(
            found[-tail:],
            list(range(6 - tail, 6)),
            f"`window(1, tail={tail})` shows the newest {tail} messages.",
        )


@case("core")
def a_tail_longer_than_the_chat_gives_all(memory: Whole) -> None:
    """Expect fewer messages than the tail has to be all shown, whatever the budget."""
    chat = memory.chat("c")
    tell(chat, 4)
    same(
        seqs(chat.window(0, tail=50).messages),
        [1, 2, 3, 4],
        "A tail longer than the chat shows all messages of it.",
    )


@case("core")
def no_budget_and_no_tail_give_nothing(memory: Whole) -> None:
    """Expect that nothing is shown where nothing was asked for."""
    chat = memory.chat("c")
    tell(chat, 4)
    same(chat.window(0, tail=0).messages, (), "`window(0, tail=0)` shows no message.")


@case("core")
def a_small_budget_leaves_out_the_oldest(memory: Whole) -> None:
    """Expect what does not fit to be left out from the oldest on, without a hole.

    What fits begins with the user, for those whose windows do.
    """
    chat = memory.chat("c")
    stored = tell(chat, 9)
    budget = sum(one.tokens for one in stored[-5:])
    same(
        seqs(chat.window(budget, tail=0).messages),
        [5, 6, 7, 8, 9],
        "A window whose budget is what the newest five messages cost shows exactly these.",
    )


@case("core")
def a_window_keeps_to_its_budget(memory: Whole) -> None:
    """Expect that only the tail may cost more."""
    chat = memory.chat("c")
    tell(chat, 9)
    for budget in BUDGETS:
        for tail in TAILS:
            window = chat.window(budget, tail=tail)
            found = seqs(window.messages)
            same(
                found, list(range(10 - len(found), 10)), "A window shows the newest messages without a hole."
            )
            expect(
                len(found) >= min(tail, 9),
                f"`window({budget}, tail={tail})` shows the newest {tail} messages.",
            )
            expect(
                window.tokens <= budget or len(found) <= tail,
                f"`window({budget}, tail={tail})` takes no message beyond the tail that does not fit the budget.",
            )


@case("core")
def a_window_accounts_for_everything(memory: Whole) -> None:
    """Expect a window to cost what its parts cost, and to state what it leaves out."""
    chat = memory.chat("c")
    total = sum(one.tokens for one in tell(chat, 9))
    for budget in BUDGETS:
        window = chat.window(budget, tail=2)
        cost = tokens_of(window.messages) + tokens_of(window.summaries)
        same(window.tokens, cost, "`window.tokens` is what its messages and summaries cost together.")
        same(window.budget, budget, "`window.budget` is the budget that was given.")
        left_out = sum(one.messages for one in window.omitted)
        same(left_out + len(window.messages), 9, "`window.omitted` counts the messages that are not shown.")
        same(
            sum(one.tokens for one in window.omitted) + window.tokens,
            total,
            "`window.omitted` counts the tokens of what is not shown.",
        )


@case("core")
def a_call_is_never_parted_from_its_results(memory: Whole) -> None:
    """Expect no call without its results and no result without its call: models refuse such a conversation."""
    chat = memory.chat("c")
    for n in range(1, 5):
        chat.append(tool_use(n, f"call-{n}", f"other-{n}"))
    _check_pairs(chat)


@case("core")
def calls_may_use_the_same_ids_again(memory: Whole) -> None:
    """Expect a result to belong to the nearest call before it: many models begin anew with `call_0` in every turn."""
    chat = memory.chat("c")
    for n in range(1, 5):
        chat.append(tool_use(n, "call_0", "call_1"))
    _check_pairs(chat)


@case("core")
def a_result_may_come_with_the_next_append(memory: Whole) -> None:
    """Expect a call and its results to belong together also if they are stored one by one, with something said in between."""
    chat = memory.chat("c")
    for n in range(1, 4):
        question, call, result, answer = tool_use(n, "call_0")
        for message in (question, call, Message("user", "Hurry up."), result, answer):
            chat.append([message])
    _check_pairs(chat)


def _check_pairs(chat: Session) -> None:
    length = chat.stats().messages
    for budget in BUDGETS:
        for tail in TAILS:
            found = chat.window(budget, tail=tail).messages
            same(
                unpaired(found),
                [],
                f"`window({budget}, tail={tail})` shows each call with its results, or neither.",
            )
            wanted = list(range(length + 1 - min(tail, length), length + 1))
            expect(
                set(wanted) <= set(seqs(found)),
                f"`window({budget}, tail={tail})` shows the newest {tail} messages.",
            )
