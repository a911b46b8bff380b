"""The core: what is appended comes back, in order, whole, and numbered; a window shows the newest of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from inspect import isawaitable
from itertools import product
from typing import cast

from holdfast.contract import Session
from holdfast.testing.case import (
    REFUSALS,
    FullProvider,
    Reopened,
    case,
    concurrently,
    contents,
    expect,
    fill,
    filled,
    lasting,
    messages_of,
    minute,
    raises,
    same,
    sample,
    say,
    seqs,
    tokens_of,
    tool_use,
    unpaired,
)
from holdfast.types import ChatStats, Message, Role, ToolCall, Window

TEXTS = (
    "Grüße aus Köln, à bientôt!",
    "日本語のテキストと漢字",
    "👩‍👩‍👧 and 🇩🇪 and e\u0301",
    "שלום עולם, مرحبا بالعالم",
    "one\nline\n\n\tand another",
    "<b>100%</b> & \"quotes\" \\ 'and' _signs_; DROP TABLE messages",
)
SIMILAR_IDS = ("a/b", "a_b", "A_b", "a b", "a.b", "../a", "a b ", " a b", "\u00e9", "e\u0301")
# More messages than any round limit on a chat.
MANY = 1_200
RAW = {
    "whole": 1,
    "large": 2**53 + 1,
    "real": 1.5,
    "round": 2.0,
    "nothing": None,
    "is": True,
    "in": [1, {"deep": "ü"}],
}


@case("core")
def the_name_is_a_text(memory: FullProvider) -> None:
    """The `name` of a provider is a text that is not blank."""
    name: object = memory.name
    expect(isinstance(name, str) and name.strip())


@case("core")
def methods_are_synchronous(memory: FullProvider) -> None:
    """Methods return results, not awaitables; those belong beside the contract, as `Memory.aio` does."""
    chat = memory.chat("c")
    results: list[object] = [chat, chat.append([sample(1)]), chat.window(), chat.stats()]
    expect(not any(map(isawaitable, results)))


@case("core")
def opening_a_chat_stores_nothing(memory: FullProvider) -> None:
    """A chat without messages has its id, an empty window, and stats that are all zero."""
    for _ in range(2):
        same(memory.chat("c").id, "c", "`id`")
    same(memory.chat("c").stats(), ChatStats())
    same(messages_of(memory.chat("c")), [])


@case("core")
def messages_keep_their_order(memory: FullProvider) -> None:
    """A window shows messages in the order in which they were appended, not in that of their times."""
    wanted = [f"message {n}" for n in range(1, 12)]
    say(memory.chat("c"), *wanted[:5])
    for n, text in enumerate(wanted[5:]):
        memory.chat("c").append([Message("user", text, at=minute(50 - n))])
    same(contents(memory.chat("c").window(100_000, tail=0).messages), wanted)


@case("core")
def a_long_chat_is_shown_whole(memory: FullProvider) -> None:
    """A window and `stats` cover every message of a long chat."""
    chat = memory.chat("c")
    say(chat, *(f"message {n}" for n in range(MANY)))
    same(chat.stats().messages, MANY, "`stats().messages`")
    same(seqs(messages_of(chat)), list(range(1, MANY + 1)))


@case("core")
def handles_of_one_chat_agree(memory: FullProvider) -> None:
    """What is appended through one handle of a chat is at once in the window and stats of all handles."""
    handles = memory.chat("c"), memory.chat("c")
    same([chat.stats().messages for chat in handles], [0, 0], "`stats().messages` of an empty chat")
    for n in range(1, 7):
        fill(handles[n % 3 == 0], 1, first=n)
        for chat in handles:
            same(seqs(messages_of(chat)), list(range(1, n + 1)), "`window`")
            same(seqs(chat.window(tail=1).messages)[-1:], [n], "`window(tail=1)`")
            same(chat.stats().messages, n, "`stats().messages`")


@case("core")
def append_returns_numbered_messages(memory: FullProvider) -> None:
    """`append` returns the messages with their `tokens`, and with `seq` counting 1, 2, 3 … in the chat."""
    chat = memory.chat("c")
    stored = [*fill(chat, 3), *fill(chat, 2, first=4)]
    same(seqs(stored), [1, 2, 3, 4, 5])
    same(seqs(messages_of(chat)), [1, 2, 3, 4, 5], "`window`")
    expect(all(message.tokens > 0 for message in stored), "A message has no `tokens`.")


@case("core")
def a_message_has_an_id(memory: FullProvider) -> None:
    """A message keeps the id that it comes with; one without an id gets one that is unique in the chat."""
    texts = [Message("user", "one", id="mine"), Message("user", "two"), Message("user", "three")]
    stored = memory.chat("c").append(texts)
    same(stored[0].id, "mine")
    expect(all(message.id for message in stored), "A message has no id.")
    same(len({message.id for message in stored}), 3, "Different ids")


@case("core")
def a_repeated_text_is_another_message(memory: FullProvider) -> None:
    """Messages with the same text are different messages with different ids, in one call or in several."""
    chat = memory.chat("c")
    stored = [*say(chat, "yes", "yes"), *say(chat, "yes")]
    same(len({message.id for message in stored}), 3, "Different ids")
    same(contents(messages_of(chat)), ["yes"] * 3)


@case("core")
def appending_nothing_stores_nothing(memory: FullProvider) -> None:
    """Appending an empty list returns an empty list and makes no chat."""
    same(list(memory.chat("c").append([])), [])
    same(memory.chat("c").stats(), ChatStats())


@case("core")
def a_failed_append_stores_nothing(memory: FullProvider) -> None:
    """An append that fails raises an error, stores none of its messages, and leaves no gap in `seq`."""
    chat = filled(memory, 2)
    raises((Exception,), chat.append, [sample(3), cast("Message", None)])
    same(seqs(messages_of(chat)), [1, 2])
    same(seqs(fill(chat, 1, first=3)), [3], "`seq` of the next message")


# What comes back of a message


def _check_stored(memory: FullProvider, messages: Sequence[Message]) -> None:
    """Append messages, and check that a window shows them with the fields that they came with."""
    memory.chat("c").append(messages)
    shown = messages_of(memory.chat("c"))
    same(len(shown), len(messages), "Number of messages")
    for message, wanted in zip(shown, messages, strict=True):
        for name in ("role", "content", "calls", "call_id", "name", "at", "raw", "meta"):
            value = _field(wanted, name)
            if value or name in ("content", "calls", "call_id"):
                same(_field(message, name), value, f"`{name}`")


def _field(message: Message, name: str) -> object:
    """Return a field of a message; payloads as JSON, in which 1, 1.0 and true differ, unlike in Python."""
    value = getattr(message, name)
    if name == "calls":
        return [(call.id, call.name, _json(call.arguments)) for call in message.calls]
    return _json(value) if name in ("raw", "meta") and value else value


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=dict)


@case("core")
def text_is_stored_unchanged(memory: FullProvider) -> None:
    """The text of a message comes back to the character: every script, emoji, white space and markup."""
    _check_stored(memory, [Message("user", text) for text in TEXTS])


@case("core")
def a_long_message_is_stored_whole(memory: FullProvider) -> None:
    """A message of 100 kB comes back whole."""
    _check_stored(memory, [Message("user", "A long report. " * 7_000)])


@case("core")
def the_payload_is_stored_unchanged(memory: FullProvider) -> None:
    """The `raw` and the `meta` of a message come back as they were, to the type of each number."""
    _check_stored(memory, [Message("user", "hello", raw=RAW, meta={"n": 1, "share": 0.5})])


@case("core")
def times_are_stored(memory: FullProvider) -> None:
    """A message keeps its time, in any time zone; one without a time gets the current one."""
    zone = timezone(timedelta(hours=-7))
    exact = minute(2) + timedelta(microseconds=123_456)
    times = [minute(1), exact, datetime(2024, 2, 29, 23, 59, 59, tzinfo=zone)]
    _check_stored(memory, [Message("user", "hello", at=time) for time in times])
    before = datetime.now(UTC) - timedelta(days=1)
    [stored] = memory.chat("c").append([Message("user", "now")])
    expect(stored.at and stored.at > before, f"`at` is {stored.at}.")


@case("core")
def calls_are_part_of_their_message(memory: FullProvider) -> None:
    """An assistant's text and its tool calls are one message, and each result keeps the id of its call."""
    _check_stored(memory, tool_use(1, "a", "b"))


@case("core")
def calls_and_results_may_have_any_form(memory: FullProvider) -> None:
    """Calls without text, arguments that are nested or no JSON, and empty results come back whole."""
    nested = {"where": {"pier": 1, "marks": ["ü", None, True, 1.5]}}
    calls = ToolCall("a", "weigh", nested), ToolCall("b", "weigh", '{"box": 1')
    results = [Message("tool", "", call_id="a"), Message("tool", "That is no JSON.", call_id="b")]
    _check_stored(memory, [Message("assistant", calls=calls), *results])


@case("core")
def the_name_of_a_speaker_is_stored(memory: FullProvider) -> None:
    """A message keeps the name of its speaker."""
    _check_stored(memory, [Message("user", "hello", name=name) for name in ("ada", "bob")])


@case("core")
def every_role_is_stored(memory: FullProvider) -> None:
    """A message keeps its role, whichever it is."""
    roles: tuple[Role, ...] = ("system", "developer", "user", "assistant")
    _check_stored(memory, [Message(role, f"the {role} speaks") for role in roles])


@lasting("core")
def messages_last(memory: FullProvider, reopened: Reopened) -> None:
    """Messages of all chats are there when the storage is opened again, and their numbers go on."""
    stored = memory.chat("c").append(
        [*tool_use(1, "a"), Message("user", "hello", name="ada", at=minute(9), raw=RAW)]
    )
    fill(memory.chat("other"), 3)
    memory = reopened()
    same(messages_of(memory.chat("c")), list(stored))
    same(memory.chat("other").stats().messages, 3, "`stats().messages` of another chat")
    same(seqs(fill(memory.chat("other"), 1, first=4)), [4], "`seq` of the next message")


# Stats, and several chats


@case("core")
def messages_and_tokens_are_counted(memory: FullProvider) -> None:
    """`stats` has the number of messages, their tokens, and the times of the first and the last."""
    chat = memory.chat("c")
    stored = fill(chat, 5)
    stats = chat.stats()
    same((stats.messages, stats.stored_tokens), (5, tokens_of(stored)), "`messages`, `stored_tokens`")
    same((stats.oldest, stats.newest), (minute(1), minute(5)), "`oldest`, `newest`")


@case("core")
def chats_are_separate(memory: FullProvider) -> None:
    """Each chat has its own messages, numbers and stats."""
    first, other = memory.chat("one"), memory.chat("other")
    say(first, "in the one")
    say(other, "in the other", "again in the other")
    same(contents(messages_of(first)), ["in the one"], "Messages")
    same(seqs(messages_of(other)), [1, 2], "`seq`")
    same(first.stats().messages, 1, "`stats().messages`")


@case("core")
def similar_ids_are_different_chats(memory: FullProvider) -> None:
    """Chats whose ids differ in one character are different chats; an id that cannot be stored is refused."""
    taken = [id_ for id_ in SIMILAR_IDS if _accepts(memory, id_)]
    for id_ in taken:
        same(contents(messages_of(memory.chat(id_))), [f"said in {id_}"], repr(id_))


def _accepts(memory: FullProvider, id: str) -> bool:
    try:
        say(memory.chat(id), f"said in {id}")
    except REFUSALS:
        return False
    return True


@case("core")
def concurrent_appends_to_one_chat_are_serialized(memory: FullProvider) -> None:
    """Concurrent appends to a chat lose nothing and leave no gap; what one call appends stands together."""

    def write(name: int) -> None:
        chat = memory.chat("c")
        for n in range(10):
            say(chat, f"{name}.{n} first", f"{name}.{n} second")

    concurrently([partial(write, name) for name in range(6)])
    shown = messages_of(memory.chat("c"))
    same(seqs(shown), list(range(1, 121)))
    pairs = list(zip(contents(shown)[::2], contents(shown)[1::2], strict=True))
    for first, second in pairs:
        same(second, first.replace("first", "second"), "The second message of a call")
    for name in range(6):
        own = [first for first, _ in pairs if first.startswith(f"{name}.")]
        same(own, [f"{name}.{n} first" for n in range(10)], "The messages of one thread")


@case("core")
def concurrent_appends_to_many_chats_lose_nothing(memory: FullProvider) -> None:
    """Concurrent appends to different chats lose nothing."""

    def write(name: int) -> None:
        for n in range(1, 9):
            fill(memory.chat(f"chat {name}"), 1, first=n)

    concurrently([partial(write, name) for name in range(6)])
    for name in range(6):
        same(seqs(messages_of(memory.chat(f"chat {name}"))), list(range(1, 9)))


@case("core")
def closing_twice_is_harmless(memory: FullProvider) -> None:
    """A provider that is closed can be closed again."""
    fill(memory.chat("c"), 1)
    memory.close()
    memory.close()


# A window shows the newest messages, within a budget, and never half of a tool use

BUDGETS = (0, 1, 20, 50, 75, 100, 150, 200, 400, 100_000)
TAILS = (0, 1, 2, 3, 4, 5, 8, 50)


def _windows(chat: Session) -> Iterator[tuple[int, int, Window, str]]:
    """Yield many budgets and tails with their windows and calls."""
    for budget, tail in product(BUDGETS, TAILS):
        yield budget, tail, chat.window(budget, tail=tail), f"`window({budget}, tail={tail})`"


@case("core")
def the_tail_is_always_shown(memory: FullProvider) -> None:
    """A window shows the newest `tail` messages, or the whole chat if shorter, whatever the budget."""
    chat = filled(memory, 5)
    for tail in (1, 3, 5):
        same(seqs(chat.window(1, tail=tail).messages)[-tail:], list(range(6 - tail, 6)), f"`tail={tail}`")
    same(seqs(chat.window(0, tail=50).messages), [1, 2, 3, 4, 5], "`tail=50`")


@case("core")
def a_budget_of_zero_shows_nothing(memory: FullProvider) -> None:
    """`window(0, tail=0)` shows no message."""
    chat = filled(memory, 4)
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
    chat = filled(memory, 9)
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
