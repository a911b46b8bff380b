"""compact: summaries stand for older messages, and nothing is lost, parted or written by halves."""

from __future__ import annotations

from holdfast.testing.case import (
    Again,
    Whole,
    WholeChat,
    case,
    contents,
    everything,
    expect,
    lasting,
    same,
    seqs,
    shown,
    tell,
    tokens_of,
    tool_use,
    unpaired,
)
from holdfast.types import Window

LENGTH = 80  # messages of a chat that is compacted
ROUNDS = 50  # of incremental compaction: none that makes progress needs so many


def crowd(memory: Whole, id: str = "c") -> tuple[WholeChat, int]:
    """Fill a chat, and give it with a budget that it takes eight times."""
    chat = memory.chat(id)
    tell(chat, LENGTH)
    return chat, chat.stats().context_tokens // 8


def compacted(memory: Whole) -> tuple[WholeChat, Window]:
    """Fill a chat and compact it, and give it with the window that shows all of it."""
    chat, budget = crowd(memory)
    chat.compact(full=True, budget=budget)
    window = everything(chat)
    expect(window.summaries, "A full compaction of a chat that takes eight times the budget makes summaries.")
    return chat, window


@lasting("compact")
def summaries_last(memory: Whole, again: Again) -> None:
    """Expect what stands for older messages when the storage is opened again."""
    chat, window = compacted(memory)
    found = everything(again().chat(chat.id))
    same(
        [(one.id, one.first, one.last, one.text) for one in found.summaries],
        [(one.id, one.first, one.last, one.text) for one in window.summaries],
        "Summaries are there when the storage is opened again.",
    )
    same(seqs(found.messages), seqs(window.messages), "Messages are there when the storage is opened again.")


@case("compact")
def a_chat_is_crowded_when_it_takes_too_much(memory: Whole) -> None:
    """Expect an empty chat never to be crowded, and no chat that has room enough."""
    expect(
        not memory.chat("empty").needs_compaction(1_000), "A chat that nothing was said in is not crowded."
    )
    chat, budget = crowd(memory)
    expect(chat.needs_compaction(budget), "A chat that takes eight times the budget is crowded.")
    expect(
        not chat.needs_compaction(1_000_000), "A chat that takes a small part of the budget is not crowded."
    )
    expect(not chat.needs_compaction(10 * budget, 0.9), "A chat below the threshold is not crowded.")
    expect(chat.needs_compaction(10 * budget, 0.7), "A chat above the threshold is crowded.")


@case("compact")
def a_small_chat_is_left_alone(memory: Whole) -> None:
    """Expect that compacting it, or an empty one, is no error and changes nothing."""
    for id_, length in (("empty", 0), ("small", 3)):
        chat = memory.chat(id_)
        tell(chat, length)
        result = chat.compact(budget=1_000_000)
        expect(result.noop, "Compacting a chat that has room makes no summary, and the result says so.")
        same(result.tokens_before, result.tokens_after, "A compaction that does nothing changes no tokens.")
        same(seqs(everything(chat).messages), list(range(1, length + 1)), "A small chat is shown as it was.")


@case("compact")
def a_full_compaction_makes_summaries(memory: Whole) -> None:
    """Expect the result to list them, and to account for what they save."""
    chat, budget = crowd(memory)
    before = chat.stats()
    result = chat.compact(full=True, budget=budget)
    expect(result.leaves >= 1, "A full compaction of a crowded chat makes at least one summary of messages.")
    expect(all(one.text.strip() for one in result.summaries), "No summary is empty.")
    same({one.level for one in result.summaries}, {"deterministic"}, "A summary that no model wrote says so.")
    same(result.calls, 0, "Without a model, none is asked.")
    same(result.tokens_before, before.context_tokens, "`tokens_before` is what the chat took in a window.")
    same(
        result.tokens_after, chat.stats().context_tokens, "`tokens_after` is what the chat takes in a window."
    )
    expect(
        result.tokens_after < result.tokens_before, "Summaries take fewer tokens than what they stand for."
    )
    expect(result.why.strip(), "`why` says in a sentence why the compaction stopped.")


@case("compact")
def no_message_is_dropped(memory: Whole) -> None:
    """Expect summaries to stand in front of messages, never in their place: all are still counted."""
    chat, window = compacted(memory)
    same(chat.stats().messages, LENGTH, "A compaction drops no message: `stats()` counts as many as before.")
    same(
        chat.stats().summarised,
        sum(one.messages for one in window.summaries),
        "`stats().summarised` counts the messages that summaries stand for.",
    )


@case("compact", "sessions")
def every_word_can_be_read_after_it(memory: Whole) -> None:
    """Expect the history to be the same to the letter before and after."""
    chat, budget = crowd(memory)
    before = chat.history()
    chat.compact(full=True, budget=budget)
    same(contents(chat.history()), contents(before), "`history` gives every message as it was said.")


@case("compact")
def summaries_and_messages_leave_no_hole(memory: Whole) -> None:
    """Expect summaries of messages 1 to n, oldest first, then the messages from n + 1 on, and none in both."""
    _, window = compacted(memory)
    check_cover(window)


def check_cover(window: Window, length: int = LENGTH) -> None:
    """Check that summaries, and the messages after them, are the whole chat."""
    covered = 0
    for one in window.summaries:
        same(
            one.first,
            covered + 1,
            "Each summary begins with the message after the last of the one before it.",
        )
        same(one.messages, one.last - one.first + 1, "`messages` of a summary counts the messages behind it.")
        covered = one.last
    same(
        seqs(window.messages),
        list(range(covered + 1, length + 1)),
        "The messages that no summary stands for are shown after the summaries, each of them once.",
    )


@case("compact")
def the_newest_messages_stay_as_they_are(memory: Whole) -> None:
    """Expect that what was said last is not summarised, and is shown in any case."""
    chat, budget = crowd(memory)
    before = everything(chat).messages
    chat.compact(full=True, budget=budget)
    window = chat.window(budget, tail=2)
    expect(window.summaries, "After a compaction a window shows summaries.")
    same(window.messages[-2:], before[-2:], "After a compaction the newest messages are shown as they were.")
    expect(window.messages[-1].seq == LENGTH, "A compaction never touches the newest message.")


@case("compact")
def it_is_done_when_it_says_so(memory: Whole) -> None:
    """Expect a second full compaction to have nothing left to do, and the chat not to be crowded any more."""
    chat, budget = crowd(memory)
    chat.compact(full=True, budget=budget)
    before = everything(chat)
    expect(
        not chat.needs_compaction(budget),
        "A chat is not crowded after a full compaction, so that nobody compacts in vain.",
    )
    expect(chat.compact(full=True, budget=budget).noop, "A second full compaction finds nothing left to do.")
    same(everything(chat), before, "A compaction that does nothing changes nothing.")


@case("compact")
def going_on_crowds_it_again(memory: Whole) -> None:
    """Expect incremental compaction to keep up with a chat that goes on: each step makes progress while it is crowded."""
    chat, budget = crowd(memory)
    for first in (LENGTH + 1, 2 * LENGTH + 1):
        _until_there_is_room(chat, budget)
        tell(chat, LENGTH, first=first)
        expect(chat.needs_compaction(budget), "A compacted chat is crowded again when enough was said since.")
    same(chat.stats().messages, 3 * LENGTH, "A compaction drops no message.")


def _until_there_is_room(chat: WholeChat, budget: int) -> None:
    for _ in range(ROUNDS):
        if not chat.needs_compaction(budget):
            return
        expect(
            not chat.compact(budget=budget).noop,
            "An incremental compaction of a crowded chat does something.",
        )
    expect(
        not chat.needs_compaction(budget),
        f"{ROUNDS} incremental compactions are enough for a chat that fits few of them.",
    )


@case("compact")
def an_order_once_shown_stays(memory: Whole) -> None:
    """Expect that appending to a compacted chat changes nothing of what stands before."""
    chat, before = compacted(memory)
    tell(chat, 2, first=LENGTH + 1)
    after = everything(chat)
    same(after.summaries, before.summaries, "Appending changes no summary.")
    same(after.messages[:-2], before.messages, "Appending changes nothing of what is shown before it.")


@case("compact")
def tool_uses_are_summarised_whole(memory: Whole) -> None:
    """Expect no summary to end between a call and its results, and no window to show one without the other."""
    chat = memory.chat("c")
    stored = [message for n in range(1, 41) for message in chat.append(tool_use(n, "call_0", "call_1"))]
    budget = chat.stats().context_tokens // 8
    chat.compact(full=True, budget=budget)
    for one in everything(chat).summaries:
        same(unpaired(stored[: one.last]), [], "No summary ends between a call and its results.")
    for limit in (0, budget // 4, budget // 2, budget, 2 * budget):
        for tail in range(6):
            found = chat.window(limit, tail=tail).messages
            same(unpaired(found), [], "After a compaction, too, a window shows each call with its results.")


@case("compact")
def a_call_that_waits_is_left_alone(memory: Whole) -> None:
    """Expect a call whose result is still to come to be there when it comes."""
    chat, budget = crowd(memory)
    question, call, result, answer = tool_use(1, "call_0")
    chat.append([question, call])
    chat.compact(full=True, budget=budget)
    chat.append([result, answer])
    found = chat.window(budget, tail=4).messages
    same(seqs(found)[-4:], list(range(LENGTH + 1, LENGTH + 5)), "A tool use that goes on is not summarised.")
    same(unpaired(found), [], "After a compaction, too, a window shows each call with its results.")


@case("compact")
def a_window_with_summaries_keeps_to_its_budget(memory: Whole) -> None:
    """Expect summaries to cost what they say, and only the tail to exceed the budget."""
    chat, _ = compacted(memory)
    for budget in (0, 50, 200, 500, 1_000, 5_000):
        window = chat.window(budget, tail=2)
        cost = tokens_of(window.messages) + tokens_of(window.summaries)
        same(window.tokens, cost, "`window.tokens` is what its messages and summaries cost together.")
        expect(
            cost <= budget or (len(window.messages) <= 2 and not window.summaries),
            "Beyond its tail, a window takes no message and no summary that does not fit the budget.",
        )
        same(seqs(window.messages)[-2:], [LENGTH - 1, LENGTH], "The tail is shown, whatever the budget.")


@case("compact")
def ids_of_summaries_are_their_own(memory: Whole) -> None:
    """Expect an id to open one summary, whichever chat it is of."""
    found = []
    for id_ in ("one", "other"):
        chat, budget = crowd(memory, id_)
        found += [one.id for one in chat.compact(full=True, budget=budget).summaries]
    expect(all(found), "A summary has an id.")
    same(len(set(found)), len(found), "No two summaries have the same id, also those of different chats.")


@case("compact", "search")
def what_is_summarised_is_still_found(memory: Whole) -> None:
    """Expect the words of a message to be found when a summary stands for it."""
    chat, _ = compacted(memory)
    hits = chat.search("crane1", "messages", LENGTH)
    expect(1 in [hit.seq for hit in hits], "A search finds messages that summaries stand for.")


@case("compact", "prompt")
def a_prompt_shows_where_to_look(memory: Whole) -> None:
    """Expect it to name each summary by its id, so that a model can ask for what is behind it."""
    chat, window = compacted(memory)
    text = shown(chat.prompt(100_000))
    for one in window.summaries:
        expect(one.id in text, "A prompt names the id of each summary that it shows.")
