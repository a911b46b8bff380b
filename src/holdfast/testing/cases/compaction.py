"""compact: summaries stand for older messages, and nothing is lost, split or stored in part."""

from __future__ import annotations

from holdfast.testing.case import (
    FullChat,
    FullProvider,
    Reopened,
    case,
    contents,
    expect,
    fill,
    full_window,
    lasting,
    prompt_text,
    same,
    seqs,
    tokens_of,
    tool_use,
    unpaired,
)
from holdfast.types import Window

# Messages of a chat that is compacted.
LENGTH = 80
# Incremental compactions that are enough for any chat, if each makes progress.
ROUNDS = 50


def long_chat(memory: FullProvider, id: str = "c") -> tuple[FullChat, int]:
    """Fill a chat, and return it with a budget that it exceeds eight times."""
    chat = memory.chat(id)
    fill(chat, LENGTH)
    return chat, chat.stats().context_tokens // 8


def compacted(memory: FullProvider) -> tuple[FullChat, Window]:
    """Fill a chat and compact it, and return it with the window that shows all of it."""
    chat, budget = long_chat(memory)
    chat.compact(full=True, budget=budget)
    window = full_window(chat)
    expect(
        window.summaries, "A full compaction of a chat that exceeds the budget eight times makes no summary."
    )
    return chat, window


@lasting("compact")
def summaries_last(memory: FullProvider, reopened: Reopened) -> None:
    """Summaries and messages of a compacted chat are there when the storage is opened again."""
    chat, window = compacted(memory)
    stored = full_window(reopened().chat(chat.id))
    same(stored.summaries, window.summaries, "Summaries")
    same(seqs(stored.messages), seqs(window.messages), "Messages")


@case("compact")
def compaction_is_needed_above_the_threshold(memory: FullProvider) -> None:
    """`needs_compaction` compares a chat's tokens with a share of the budget; an empty chat needs none."""
    expect(not memory.chat("empty").needs_compaction(1_000), "An empty chat needs it.")
    chat, budget = long_chat(memory)
    expect(chat.needs_compaction(budget), "A chat that exceeds the budget eight times does not need it.")
    expect(not chat.needs_compaction(1_000_000), "A chat of a small part of the budget needs it.")
    expect(not chat.needs_compaction(10 * budget, 0.9), "A chat of 0.8 of the budget needs it at 0.9.")
    expect(chat.needs_compaction(10 * budget, 0.7), "A chat of 0.8 of the budget does not need it at 0.7.")


@case("compact")
def a_short_chat_is_not_compacted(memory: FullProvider) -> None:
    """Compacting a chat within the budget, or an empty one, changes nothing, and the result is a `noop`."""
    for id_, length in (("empty", 0), ("short", 3)):
        chat = memory.chat(id_)
        fill(chat, length)
        result = chat.compact(budget=1_000_000)
        expect(result.noop, "`noop` is False.")
        same(result.tokens_before, result.tokens_after, "`tokens_before` and `tokens_after`")
        same(seqs(full_window(chat).messages), list(range(1, length + 1)), "Messages")


@case("compact")
def a_full_compaction_makes_summaries(memory: FullProvider) -> None:
    """The result of a full compaction has the summaries, their level, the calls, and the tokens saved."""
    chat, budget = long_chat(memory)
    before = chat.stats()
    result = chat.compact(full=True, budget=budget)
    expect(result.leaves >= 1, "No summary of messages was made.")
    expect(all(summary.text.strip() for summary in result.summaries), "A summary is empty.")
    same({summary.level for summary in result.summaries}, {"deterministic"}, "`level` without a model")
    same(result.calls, 0, "`calls` without a model")
    same(result.tokens_before, before.context_tokens, "`tokens_before`")
    same(result.tokens_after, chat.stats().context_tokens, "`tokens_after`")
    expect(result.tokens_after < result.tokens_before, "The summaries save no tokens.")
    expect(result.why.strip(), "`why` is empty.")


@case("compact")
def no_message_is_dropped(memory: FullProvider) -> None:
    """After a compaction, `stats` counts as many messages as before, and those that summaries stand for."""
    chat, window = compacted(memory)
    stats, summarised = chat.stats(), sum(summary.messages for summary in window.summaries)
    same((stats.messages, stats.summarised), (LENGTH, summarised), "`messages`, `summarised`")


@case("compact", "sessions")
def the_history_is_unchanged(memory: FullProvider) -> None:
    """`history` is the same before and after a compaction."""
    chat, budget = long_chat(memory)
    before = chat.history()
    chat.compact(full=True, budget=budget)
    same(contents(chat.history()), contents(before))


@case("compact")
def summaries_and_messages_have_no_gap(memory: FullProvider) -> None:
    """Summaries cover the messages 1 to n, oldest first; all messages from n + 1 on are shown after them."""
    _, window = compacted(memory)
    check_coverage(window)


def check_coverage(window: Window, length: int = LENGTH) -> None:
    """Check that summaries, and the messages after them, are the whole chat, each message once."""
    covered = 0
    for summary in window.summaries:
        same(summary.first, covered + 1, "`first` of a summary")
        same(summary.messages, summary.last - summary.first + 1, "`messages` of a summary")
        covered = summary.last
    same(seqs(window.messages), list(range(covered + 1, length + 1)), "Messages after the summaries")


@case("compact")
def the_newest_messages_are_not_summarised(memory: FullProvider) -> None:
    """After a compaction, a window shows summaries, and the newest messages as they were."""
    chat, budget = long_chat(memory)
    before = full_window(chat).messages
    chat.compact(full=True, budget=budget)
    window = chat.window(budget, tail=2)
    expect(window.summaries, "There are no summaries.")
    same(window.messages[-2:], before[-2:])
    same(window.messages[-1].seq, LENGTH)


@case("compact")
def a_full_compaction_leaves_nothing_to_do(memory: FullProvider) -> None:
    """After a full compaction, a chat needs none, and another one is a `noop` that changes nothing."""
    chat, budget = long_chat(memory)
    chat.compact(full=True, budget=budget)
    before = full_window(chat)
    expect(not chat.needs_compaction(budget), "It needs compaction.")
    expect(chat.compact(full=True, budget=budget).noop, "The second full compaction is no `noop`.")
    same(full_window(chat), before)


@case("compact")
def incremental_compaction_keeps_up(memory: FullProvider) -> None:
    """A chat that goes on needs compaction again; until it does not, each incremental one makes progress."""
    chat, budget = long_chat(memory)
    for first in (LENGTH + 1, 2 * LENGTH + 1):
        for _ in range(ROUNDS):
            if not chat.needs_compaction(budget):
                break
            expect(not chat.compact(budget=budget).noop, "It needs compaction, which is a `noop`.")
        expect(not chat.needs_compaction(budget), f"{ROUNDS} incremental compactions are not enough.")
        fill(chat, LENGTH, first=first)
        expect(chat.needs_compaction(budget), "After as many messages again, it does not need compaction.")
    same(chat.stats().messages, 3 * LENGTH, "`stats().messages`")


@case("compact")
def appending_changes_no_summary(memory: FullProvider) -> None:
    """Appending to a compacted chat changes nothing of what a window shows before the new messages."""
    chat, before = compacted(memory)
    fill(chat, 2, first=LENGTH + 1)
    after = full_window(chat)
    same(after.summaries, before.summaries, "Summaries")
    same(after.messages[:-2], before.messages, "Messages")


@case("compact")
def tool_uses_are_summarised_whole(memory: FullProvider) -> None:
    """No summary separates a call from its results, nor does a window of a compacted chat."""
    chat = memory.chat("c")
    stored = [message for n in range(1, 41) for message in chat.append(tool_use(n, "call_0", "call_1"))]
    budget = chat.stats().context_tokens // 8
    chat.compact(full=True, budget=budget)
    for summary in full_window(chat).summaries:
        same(unpaired(stored[: summary.last]), [], "Calls and results that a summary separates")
    for limit in (0, budget // 4, budget // 2, budget, 2 * budget):
        for tail in range(6):
            shown = chat.window(limit, tail=tail).messages
            same(unpaired(shown), [], f"Calls and results apart in `window({limit}, tail={tail})`")


@case("compact")
def an_open_call_is_not_summarised(memory: FullProvider) -> None:
    """A call whose result is still to come is not summarised, and is shown with its result."""
    chat, budget = long_chat(memory)
    question, call, result, answer = tool_use(1, "call_0")
    chat.append([question, call])
    chat.compact(full=True, budget=budget)
    chat.append([result, answer])
    shown = chat.window(budget, tail=4).messages
    same(seqs(shown)[-4:], list(range(LENGTH + 1, LENGTH + 5)))
    same(unpaired(shown), [], "Calls and results apart")


@case("compact")
def a_window_with_summaries_is_within_its_budget(memory: FullProvider) -> None:
    """A window of a compacted chat has the tokens of what it shows; only its tail exceeds the budget."""
    chat, _ = compacted(memory)
    for budget in (0, 50, 200, 500, 1_000, 5_000):
        window = chat.window(budget, tail=2)
        same(window.tokens, tokens_of([*window.messages, *window.summaries]), "`tokens`")
        beyond = len(window.messages) > 2 or window.summaries
        expect(window.tokens <= budget or not beyond, f"`window({budget}, tail=2)`: {window.tokens} tokens.")
        same(seqs(window.messages)[-2:], [LENGTH - 1, LENGTH], "The tail")


@case("compact")
def ids_of_summaries_are_unique(memory: FullProvider) -> None:
    """Each summary has an id of its own, also among those of different chats."""
    ids = []
    for id_ in ("one", "other"):
        chat, budget = long_chat(memory, id_)
        ids += [summary.id for summary in chat.compact(full=True, budget=budget).summaries]
    expect(all(ids), "A summary has no id.")
    same(len(set(ids)), len(ids), "Different ids")


@case("compact", "search")
def summarised_messages_are_found(memory: FullProvider) -> None:
    """`search` finds messages that summaries stand for."""
    chat, _ = compacted(memory)
    expect(1 in [hit.seq for hit in chat.search("crane1", "messages", LENGTH)])


@case("compact", "prompt")
def a_prompt_names_its_summaries(memory: FullProvider) -> None:
    """A prompt names each summary that it shows by its id."""
    chat, window = compacted(memory)
    text = prompt_text(chat.prompt(100_000))
    same([summary.id for summary in window.summaries if summary.id not in text], [], "Ids that are missing")
