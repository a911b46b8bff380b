"""explore: every summary leads down to the messages that it stands for."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.testing.case import (
    FullChat,
    FullProvider,
    case,
    contents,
    expect,
    fill,
    full_window,
    refuses,
    same,
    sample,
    seqs,
    tokens_of,
)
from holdfast.testing.cases.compaction import LENGTH, compacted, long_chat
from holdfast.types import Expansion, Message, Summary

# Tokens that everything fits in.
ENOUGH = 1_000_000
# Pages that there are if each has one message.
MOST = 3 * LENGTH


def pages(chat: FullChat, id: str, max_tokens: int = ENOUGH) -> Iterator[Expansion]:
    """Expand a summary page by page, each of at most so many tokens."""
    cursor, seen = None, set[str]()
    while True:
        page = chat.expand(id, max_tokens, cursor=cursor)
        yield page
        cursor = page.cursor
        same(page.truncated, cursor is not None, "`truncated`, and whether there is a `cursor`")
        if cursor is None:
            return
        expect(cursor not in seen and len(seen) < MOST, "The pages of an expansion do not end.")
        seen.add(cursor)


def walk(chat: FullChat, id: str, max_tokens: int = ENOUGH) -> Iterator[Message]:
    """Yield all messages behind a summary, going down from it."""
    for page in pages(chat, id, max_tokens):
        yield from page.messages
        for child in page.children:
            expect(child.depth < page.summary.depth, "A child is not below its summary.")
            yield from walk(chat, child.id, max_tokens)


def _tree(chat: FullChat) -> Iterator[tuple[Summary, list[Summary]]]:
    """Yield all summaries of a chat with their children, each before these."""
    left = list(full_window(chat).summaries)
    while left:
        summary = left.pop()
        children = [child for page in pages(chat, summary.id) for child in page.children]
        yield summary, children
        left += children


def _compact_again(memory: FullProvider) -> FullChat:
    """Compact a chat again and again as it goes on, so that there are summaries of summaries."""
    chat, budget = long_chat(memory)
    for part in range(1, 3):
        chat.compact(full=True, budget=budget)
        fill(chat, LENGTH, first=part * LENGTH + 1)
    chat.compact(full=True, budget=budget)
    return chat


@case("explore")
def an_unknown_summary_is_refused(memory: FullProvider) -> None:
    """`describe` and `expand` refuse an id that is of no summary."""
    chat = memory.chat("c")
    fill(chat, 2)
    for id_ in ("unknown", "sum_0123456789abcdef", "1"):
        refuses(chat.describe, id_)
        refuses(chat.expand, id_)


@case("explore", "compact")
def a_leaf_expands_to_its_messages(memory: FullProvider) -> None:
    """A summary of messages expands to these, in order and word for word, and has no children."""
    chat, _ = compacted(memory)
    leaves = [summary for summary, _ in _tree(chat) if summary.depth == 0]
    expect(leaves, "There is no summary of messages.")
    for summary in leaves:
        page = chat.expand(summary.id, ENOUGH)
        same(page.children, (), "`children`")
        same(seqs(page.messages), list(range(summary.first, summary.last + 1)), "`messages`")
        same(contents(page.messages), [sample(seq).content for seq in seqs(page.messages)], "Texts")


@case("explore", "compact")
def a_node_expands_to_its_children(memory: FullProvider) -> None:
    """A summary of summaries expands to two or more, one level below it, that cover its messages in order."""
    chat = _compact_again(memory)
    for summary, children in _tree(chat):
        if summary.depth:
            same(chat.expand(summary.id).messages, (), "`messages`")
            expect(len(children) > 1, "There is only one child.")
            same({child.depth for child in children}, {summary.depth - 1}, "`depth` of the children")
            firsts = [summary.first, *(child.last + 1 for child in children[:-1])]
            same([child.first for child in children], firsts)
            same(children[-1].last, summary.last, "`last` of the last child")


@case("explore", "compact")
def a_description_has_parents_and_children(memory: FullProvider) -> None:
    """`describe` returns a summary, its children as `expand` has them, and its parents, nearest first."""
    chat = _compact_again(memory)
    for summary, children in _tree(chat):
        description = chat.describe(summary.id)
        same(description.summary, summary, "`summary`")
        same(description.children, tuple(child.id for child in children), "`children`")
        for child in description.children:
            same(chat.describe(child).parents[:1], (summary.id,), "The first of the `parents`")
    for summary in full_window(chat).summaries:
        same(chat.describe(summary.id).parents, (), "`parents` of a summary that a window shows")


@case("explore", "compact")
def every_message_is_reached(memory: FullProvider) -> None:
    """All summaries of a window, expanded to the messages, and the messages after them are the whole chat."""
    chat = _compact_again(memory)
    window = full_window(chat)
    reached = [message for summary in window.summaries for message in walk(chat, summary.id)]
    wanted = [sample(n).content for n in range(1, 3 * LENGTH + 1)]
    same(contents([*reached, *window.messages]), wanted)


@case("explore", "compact")
def an_expansion_is_within_its_tokens(memory: FullProvider) -> None:
    """A page has one item, or more within `max_tokens`; a cut one says so, and all pages have everything."""
    chat, window = compacted(memory)
    summary = window.summaries[0]
    for most in (0, 1, 120):
        expansions = list(pages(chat, summary.id, most))
        for page in expansions:
            items: list[Message | Summary] = [*page.messages, *page.children]
            expect(items, "A page is empty.")
            expect(
                tokens_of(items) <= most or len(items) == 1,
                f"A page has {tokens_of(items)} tokens of {most}.",
            )
        expect(most > 1 or (len(expansions) > 1 and expansions[0].truncated), "`truncated` is False.")
        same(seqs(walk(chat, summary.id, most)), seqs(walk(chat, summary.id)), "Messages of all pages")


@case("explore", "compact")
def a_cursor_of_another_summary_is_refused(memory: FullProvider) -> None:
    """`expand` refuses a cursor that is none, or that of another summary."""
    chat, window = compacted(memory)
    refuses(chat.expand, window.summaries[0].id, 1, cursor="no cursor")
    first, *others = [leaf for leaf, _ in _tree(chat) if leaf.depth == 0]
    cursor = chat.expand(first.id, 1).cursor
    for other in others if cursor else ():
        refuses(chat.expand, other.id, 1, cursor=cursor)
