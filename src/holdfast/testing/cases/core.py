"""The core: what is appended comes back, in order, whole, and within a budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from inspect import isawaitable
from typing import cast

from holdfast.testing.case import (
    REFUSALS,
    Again,
    Whole,
    at_once,
    case,
    contents,
    everything,
    expect,
    lasting,
    minute,
    said,
    same,
    seqs,
    tell,
    tool_use,
)
from holdfast.types import ChatStats, Message, Role, ToolCall

WORDS = (
    "Grüße aus Köln, à bientôt!",
    "日本語のテキストと漢字",
    "👩‍👩‍👧 and 🇩🇪 and e\u0301",
    "שלום עולם, مرحبا بالعالم",
    "one\nline\n\n\tand another",
    "<b>100%</b> & \"quotes\" \\ 'and' _signs_; DROP TABLE messages",
)
ALIKE = ("a/b", "a_b", "A_b", "a b", "a.b", "../a", "a b ", " a b", "\u00e9", "e\u0301")
MANY = 1_200  # messages: more than anybody keeps who keeps a round number of them
RAW = {
    "whole": 1,
    "large": 2**53 + 1,
    "real": 1.5,
    "round": 2.0,
    "said": None,
    "is": True,
    "in": [1, {"deep": "ü"}],
}


@case("core")
def it_has_a_name(memory: Whole) -> None:
    """Expect traces and reports to have something to call it by."""
    name: object = memory.name
    expect(isinstance(name, str) and name.strip(), "`name` is a text that is not blank; no method.")


@case("core")
def nothing_has_to_be_awaited(memory: Whole) -> None:
    """Expect results; who wants to await them does so with what stands beside the contract, such as `Memory.aio`."""
    chat = memory.chat("c")
    for given in (chat, chat.append([said(1)]), chat.window(), chat.stats()):
        expect(
            not isawaitable(given), "Methods are synchronous: they give results, not what is to be awaited."
        )


@case("core")
def opening_a_chat_stores_nothing(memory: Whole) -> None:
    """Expect that a chat that nothing was said in is not there, however often it is opened."""
    for _ in range(2):
        same(memory.chat("c").id, "c", "A chat has the id that it was opened with.")
    same(memory.chat("c").stats(), ChatStats(), "The stats of a chat that nothing was said in are all zero.")
    same(everything(memory.chat("c")).messages, (), "The window of a chat that nothing was said in is empty.")


@case("core")
def messages_come_back_in_their_order(memory: Whole) -> None:
    """Expect five messages, all of them, oldest first."""
    chat = memory.chat("c")
    chat.append([Message("user", f"message {n}", at=minute(n)) for n in range(1, 6)])
    found = contents(chat.window(100_000, tail=0).messages)
    same(
        found,
        [f"message {n}" for n in range(1, 6)],
        "A window that is large enough shows all messages, oldest first.",
    )


@case("core")
def however_many_there_are_all_come_back(memory: Whole) -> None:
    """Expect a long chat to lose nothing at its beginning."""
    chat = memory.chat("c")
    chat.append([Message("user", f"message {n}", at=minute(n)) for n in range(1, MANY + 1)])
    same(chat.stats().messages, MANY, "`stats().messages` counts all messages of a long chat.")
    found = seqs(everything(chat).messages)
    same(found, list(range(1, MANY + 1)), "A window that is large enough shows all messages of a long chat.")


@case("core")
def a_window_is_that_of_now(memory: Whole) -> None:
    """Expect a handle that has shown a chat once to show what was said since, through it and through others."""
    one, other = memory.chat("c"), memory.chat("c")
    for n in range(1, 7):
        tell(one if n % 3 else other, 1, first=n)
        for chat in (one, other):
            same(
                seqs(everything(chat).messages),
                list(range(1, n + 1)),
                "A window shows what was said until now.",
            )
            same(seqs(chat.window(tail=1).messages)[-1:], [n], "A window ends with the newest message.")


@case("core")
def the_payload_comes_back_as_it_was(memory: Whole) -> None:
    """Expect what a message came in as, to the type of each number: an id that becomes a float names nothing."""
    memory.chat("c").append([Message("user", "hello", raw=RAW, meta={"n": 1, "share": 0.5})])
    [found] = everything(memory.chat("c")).messages
    same(_typed(found.raw), _typed(RAW), "The `raw` of a message comes back as it was.")
    same(_typed(found.meta), _typed({"n": 1, "share": 0.5}), "The `meta` of a message comes back as it was.")


def _typed(value: object) -> object:
    """Write JSON so that 1, 1.0 and true are three things, as they are not for Python."""
    if isinstance(value, Mapping):
        return {name: _typed(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_typed(one) for one in value]
    return type(value).__name__, value


@lasting("core")
def what_was_said_lasts(memory: Whole, again: Again) -> None:
    """Expect every message of every chat when the storage is opened again, and the numbers to go on."""
    said_before = [*tool_use(1, "a"), Message("user", "hello", name="ada", at=minute(9), raw=RAW)]
    stored = list(memory.chat("c").append(said_before))
    tell(memory.chat("other"), 3)
    memory = again()
    found = list(everything(memory.chat("c")).messages)
    same(found, stored, "What was said is there when the storage is opened again, as it was.")
    same(memory.chat("other").stats().messages, 3, "Each chat is there when the storage is opened again.")
    same(
        seqs(tell(memory.chat("other"), 1, first=4)),
        [4],
        "The numbers go on when the storage is opened again.",
    )


@case("core")
def the_order_holds_across_appends(memory: Whole) -> None:
    """Expect what is appended later to come later, through whichever handle, and whatever time the messages name."""
    for n in range(1, 8):
        memory.chat("c").append([Message("user", f"message {n}", at=minute(50 - n))])
    found = everything(memory.chat("c")).messages
    same(
        contents(found),
        [f"message {n}" for n in range(1, 8)],
        "Messages stand in the order in which they were appended, not in that of their times.",
    )


@case("core")
def append_returns_the_messages_numbered(memory: Whole) -> None:
    """Expect them to count 1, 2, 3 … within the chat."""
    chat = memory.chat("c")
    stored = [*tell(chat, 3), *tell(chat, 2, first=4)]
    same(
        seqs(stored),
        [1, 2, 3, 4, 5],
        "`append` returns the messages with `seq` counting 1, 2, 3 … in the chat.",
    )
    same(
        seqs(everything(chat).messages),
        [1, 2, 3, 4, 5],
        "The messages of a window have the `seq` they were given.",
    )
    expect(
        all(one.tokens > 0 for one in stored), "`append` returns the messages with their `tokens`, above 0."
    )


@case("core")
def each_message_has_an_id(memory: Whole) -> None:
    """Expect an id of one's own to stay, and others to be made."""
    chat = memory.chat("c")
    stored = chat.append(
        [Message("user", "one", id="mine"), Message("user", "two"), Message("user", "three")]
    )
    same(stored[0].id, "mine", "A message keeps the id that it comes with.")
    expect(all(one.id for one in stored), "A message that comes without an id gets one.")
    same(len({one.id for one in stored}), 3, "No two messages of a chat have the same id.")


@case("core")
def an_empty_append_does_nothing(memory: Whole) -> None:
    """Expect that no message is no error, and no chat."""
    same(list(memory.chat("c").append([])), [], "Appending an empty list returns an empty list.")
    same(memory.chat("c").stats(), ChatStats(), "Appending an empty list stores nothing.")


@case("core")
def an_append_that_fails_stores_nothing(memory: Whole) -> None:
    """Expect all messages of a call to be stored, or none."""
    chat = memory.chat("c")
    tell(chat, 2)
    raised = False
    try:
        chat.append([said(3), cast("Message", None)])
    except Exception:  # noqa: BLE001 - however it refuses that
        raised = True
    expect(raised, "Appending what is no message raises an error.")
    same(seqs(everything(chat).messages), [1, 2], "If one message cannot be stored, none of the call is.")
    same(seqs(tell(chat, 1, first=3)), [3], "An append that failed leaves no gap in the numbers.")


@case("core")
def the_same_words_again_are_another_message(memory: Whole) -> None:
    """Expect that who says yes three times has said it three times."""
    chat = memory.chat("c")
    stored = [
        *chat.append([Message("user", "yes"), Message("user", "yes")]),
        *chat.append([Message("user", "yes")]),
    ]
    same(len({one.id for one in stored}), 3, "Messages with the same words have different ids.")
    same(contents(everything(chat).messages), ["yes"] * 3, "The same words again are another message.")


@case("core")
def words_come_back_as_they_were(memory: Whole) -> None:
    """Expect every script, emoji, white space and markup to come back to the character."""
    chat = memory.chat("c")
    chat.append([Message("user", text) for text in WORDS])
    same(contents(everything(chat).messages), list(WORDS), "The words of a message come back as they were.")


@case("core")
def a_long_message_comes_back_whole(memory: Whole) -> None:
    """Expect a message of 100 kB to be a message like any other."""
    chat, text = memory.chat("c"), "A long report. " * 7_000
    chat.append([Message("user", text)])
    expect(contents(everything(chat).messages) == [text], "A message of 100 kB comes back whole.")


@case("core")
def times_are_kept(memory: Whole) -> None:
    """Expect the moment at which something was said, in whichever zone it was given."""
    chat = memory.chat("c")
    times = [
        minute(1),
        minute(2) + timedelta(microseconds=123_456),
        datetime(2024, 2, 29, 23, 59, 59, tzinfo=timezone(timedelta(hours=-7))),
    ]
    chat.append([Message("user", "hello", at=time) for time in times])
    same([one.at for one in everything(chat).messages], times, "A message keeps the time that it comes with.")
    before = datetime.now(UTC) - timedelta(days=1)
    [stored] = chat.append([Message("user", "now")])
    expect(stored.at and stored.at > before, "A message that comes without a time gets that of now.")


@case("core")
def a_message_with_calls_is_one_message(memory: Whole) -> None:
    """Expect text, calls and their arguments, and the results with the calls that they answer."""
    chat = memory.chat("c")
    wanted = tool_use(1, "a", "b")
    chat.append(wanted)
    _check_calls(everything(chat).messages, wanted)


@case("core")
def calls_and_results_may_be_of_any_form(memory: Whole) -> None:
    """Expect calls without a text, with nested arguments or some that are no JSON, and results that say nothing."""
    chat = memory.chat("c")
    nested = {"where": {"pier": 1, "marks": ["ü", None, True, 1.5]}}
    wanted = [
        Message("assistant", calls=(ToolCall("a", "weigh", nested), ToolCall("b", "weigh", '{"box": 1'))),
        Message("tool", "", call_id="a"),
        Message("tool", "That is no JSON.", call_id="b"),
    ]
    chat.append(wanted)
    _check_calls(everything(chat).messages, wanted)


def _check_calls(found: Sequence[Message], wanted: Sequence[Message]) -> None:
    same(
        len(found),
        len(wanted),
        "An assistant's text and its tool calls are one message, and each result is one, be its text empty or not.",
    )
    for one, other in zip(found, wanted, strict=True):
        same(one.role, other.role, "A message keeps its role.")
        same(one.content, other.content, "A message with tool calls keeps its text.")
        same(
            [_call(call) for call in one.calls],
            [_call(call) for call in other.calls],
            "Tool calls come back whole.",
        )
        same(one.call_id, other.call_id, "A result keeps the id of the call that it answers.")


def _call(call: ToolCall) -> tuple[str, str, object]:
    return call.id, call.name, _typed(call.arguments)


@case("core")
def the_name_of_a_speaker_is_kept(memory: Whole) -> None:
    """Expect to know, of two users in one chat, who said what."""
    chat = memory.chat("c")
    chat.append([Message("user", "hello", name="ada"), Message("user", "hello", name="bob")])
    same(
        [one.name for one in everything(chat).messages],
        ["ada", "bob"],
        "A message keeps the name of its speaker.",
    )


@case("core")
def every_role_is_kept(memory: Whole) -> None:
    """Expect instructions to stay where they were said, as what they are."""
    chat = memory.chat("c")
    roles: tuple[Role, ...] = ("system", "developer", "user", "assistant")
    chat.append([Message(role, f"the {role} speaks") for role in roles])
    same(
        [one.role for one in everything(chat).messages],
        list(roles),
        "A message keeps its role, whichever it is.",
    )


# Stats


@case("core")
def messages_and_tokens_are_counted(memory: Whole) -> None:
    """Expect to learn how many there are, what they cost, and when the first and the last of them were said."""
    chat = memory.chat("c")
    stored = tell(chat, 5)
    stats = chat.stats()
    same(stats.messages, 5, "`stats().messages` counts the messages of the chat.")
    same(
        stats.stored_tokens,
        sum(one.tokens for one in stored),
        "`stats().stored_tokens` is what the messages of the chat cost together.",
    )
    same(
        (stats.oldest, stats.newest),
        (minute(1), minute(5)),
        "`stats()` gives the times of the first and last message.",
    )


@case("core")
def chats_do_not_mix(memory: Whole) -> None:
    """Expect each chat to have its own messages and numbers."""
    one, other = memory.chat("one"), memory.chat("other")
    one.append([Message("user", "in the one")])
    other.append([Message("user", "in the other"), Message("user", "again in the other")])
    same(contents(everything(one).messages), ["in the one"], "A chat shows its own messages only.")
    same(seqs(everything(other).messages), [1, 2], "Each chat counts its messages from 1 on.")
    same(one.stats().messages, 1, "`stats()` counts the messages of its own chat only.")


@case("core")
def ids_that_look_alike_are_different_chats(memory: Whole) -> None:
    """Expect no two chats to become one by how their ids are written down; an id that cannot be is refused."""
    taken = [id_ for id_ in ALIKE if _takes(memory, id_)]
    for id_ in taken:
        found = contents(everything(memory.chat(id_)).messages)
        same(found, [f"said in {id_}"], "Chats whose ids differ in one character are different chats.")


def _takes(memory: Whole, id: str) -> bool:
    try:
        memory.chat(id).append([Message("user", f"said in {id}")])
    except REFUSALS:
        return False
    return True


@case("core")
def two_handles_are_one_chat(memory: Whole) -> None:
    """Expect each to see at once what was appended through the other."""
    one, other = memory.chat("c"), memory.chat("c")
    same((one.stats().messages, other.stats().messages), (0, 0), "A chat that nothing was said in is empty.")
    tell(one, 2)
    tell(other, 2, first=3)
    for chat in (one, other):
        same(
            seqs(everything(chat).messages),
            [1, 2, 3, 4],
            "What is appended through one handle all others see.",
        )
        same(chat.stats().messages, 4, "What is appended through one handle all others count.")


# At the same time


@case("core")
def appends_at_once_to_one_chat_lose_nothing(memory: Whole) -> None:
    """Expect them to be put in a line: no number is missing, and what was appended together stands together."""

    def writer(name: int) -> None:
        chat = memory.chat("c")
        for n in range(10):
            chat.append([Message("user", f"{name}.{n} first"), Message("assistant", f"{name}.{n} second")])

    at_once([partial(writer, name) for name in range(6)])
    found = everything(memory.chat("c")).messages
    same(
        seqs(found),
        list(range(1, 121)),
        "Appends at the same time lose nothing, and number the messages 1, 2, 3 ….",
    )
    spoken = contents(found)
    for first, second in zip(spoken[::2], spoken[1::2], strict=True):
        same(second, first.replace("first", "second"), "What one call appends stands together.")
    for name in range(6):
        own = [text for text in spoken if text.startswith(f"{name}.") and text.endswith("first")]
        same(own, [f"{name}.{n} first" for n in range(10)], "The appends of one thread keep their order.")


@case("core")
def appends_at_once_to_many_chats_lose_nothing(memory: Whole) -> None:
    """Expect them not to disturb each other."""

    def writer(name: int) -> None:
        for n in range(1, 9):
            memory.chat(f"chat {name}").append([said(n)])

    at_once([partial(writer, name) for name in range(6)])
    for name in range(6):
        same(
            seqs(everything(memory.chat(f"chat {name}")).messages),
            list(range(1, 9)),
            "Appends at the same time to different chats lose nothing.",
        )


@case("core")
def closing_twice_is_harmless(memory: Whole) -> None:
    """Expect that closing is for everybody: one may not know whether somebody else did it."""
    tell(memory.chat("c"), 1)
    memory.close()
    memory.close()
