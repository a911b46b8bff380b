"""explore: from every summary a way leads down to the words that it stands for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from holdfast.testing.case import (
    Whole,
    WholeChat,
    case,
    contents,
    everything,
    expect,
    refuses,
    said,
    same,
    seqs,
    tell,
    tokens_of,
)
from holdfast.testing.cases.compacting import LENGTH, compacted, crowd
from holdfast.types import Expansion, Message, Summary

ENOUGH = 1_000_000  # tokens that everything fits in
MOST = 3 * LENGTH  # pages that there can be, if each has a message


def pages(chat: WholeChat, id: str, cap: int = ENOUGH) -> Iterator[Expansion]:
    """Open a summary page by page, each of at most so many tokens."""
    cursor, seen = None, set[str]()
    while True:
        page = chat.expand(id, cap, cursor=cursor)
        yield page
        cursor = page.cursor
        same(page.truncated, cursor is not None, "An expansion that is truncated has a cursor, and no other.")
        if cursor is None:
            return
        expect(cursor not in seen, "Each cursor leads on, not back.")
        expect(len(seen) < MOST, "Page after page, an expansion comes to an end.")
        seen.add(cursor)


def walk(chat: WholeChat, id: str, cap: int = ENOUGH) -> Iterator[Message]:
    """Go down from a summary to all messages behind it."""
    for page in pages(chat, id, cap):
        yield from page.messages
        for child in page.children:
            expect(child.depth < page.summary.depth, "What a summary was made of lies below it.")
            yield from walk(chat, child.id, cap)


def tree(chat: WholeChat) -> Iterator[Summary]:
    """Return all summaries of a chat, each before those it was made of."""
    left = list(everything(chat).summaries)
    while left:
        one = left.pop()
        yield one
        left += [child for page in pages(chat, one.id) for child in page.children]


def _deep(memory: Whole) -> WholeChat:
    """Compact a chat again and again as it goes on, so that summaries of summaries come about."""
    chat, budget = crowd(memory)
    for part in range(1, 3):
        chat.compact(full=True, budget=budget)
        tell(chat, LENGTH, first=part * LENGTH + 1)
    chat.compact(full=True, budget=budget)
    return chat


@case("explore")
def an_unknown_id_is_refused(memory: Whole) -> None:
    """Expect an error, not an empty answer."""
    chat = memory.chat("c")
    tell(chat, 2)
    for id_ in ("unknown", "sum_0123456789abcdef", "1"):
        refuses(partial(chat.describe, id_), "`describe` refuses an id that is of no summary.")
        refuses(partial(chat.expand, id_), "`expand` refuses an id that is of no summary.")


@case("explore", "compact")
def a_leaf_opens_to_its_messages(memory: Whole) -> None:
    """Expect the original messages, in order, word for word."""
    chat, _ = compacted(memory)
    leaves = [one for one in tree(chat) if one.depth == 0]
    expect(leaves, "At the bottom of all summaries are some that were made of messages.")
    for one in leaves:
        found = chat.expand(one.id, ENOUGH)
        same(found.children, (), "A summary of messages has no summaries behind it.")
        same(
            seqs(found.messages),
            list(range(one.first, one.last + 1)),
            "A leaf opens to its messages, in order.",
        )
        same(
            contents(found.messages),
            [said(seq).content for seq in seqs(found.messages)],
            "A leaf opens to the words as they were said.",
        )


@case("explore", "compact")
def a_node_opens_to_what_it_was_made_of(memory: Whole) -> None:
    """Expect what it was made of, not what contains it: neighbours, one level below, that cover its messages in order."""
    chat = _deep(memory)
    for one in tree(chat):
        if one.depth:
            children = [child for page in pages(chat, one.id) for child in page.children]
            same(chat.expand(one.id).messages, (), "A summary of summaries opens to summaries.")
            expect(len(children) > 1, "A summary of summaries was made of two at least.")
            same(
                {child.depth for child in children},
                {one.depth - 1},
                "Its children are all one level below it.",
            )
            same(
                (children[0].first, children[-1].last),
                (one.first, one.last),
                "Its children cover its messages.",
            )
            firsts = [child.first for child in children[1:]]
            same(
                firsts,
                [child.last + 1 for child in children[:-1]],
                "Its children are neighbours, oldest first.",
            )


@case("explore", "compact")
def a_description_places_a_summary(memory: Whole) -> None:
    """Expect that what it was made of are its children, and what contains it are its parents."""
    chat = _deep(memory)
    for one in tree(chat):
        found = chat.describe(one.id)
        same(found.summary, one, "`describe` gives the summary that windows and expansions show.")
        children = tuple(child.id for page in pages(chat, one.id) for child in page.children)
        same(found.children, children, "`describe` lists the children that `expand` gives.")
        for child in children:
            same(
                chat.describe(child).parents[:1],
                (one.id,),
                "The first parent of a child is what contains it.",
            )
    for one in everything(chat).summaries:
        same(chat.describe(one.id).parents, (), "A summary that a window shows has no parents.")


@case("explore", "compact")
def every_message_can_be_reached(memory: Whole) -> None:
    """Expect nothing to be lost: all summaries, opened down to the bottom, and the messages after them are the whole chat."""
    chat = _deep(memory)
    window = everything(chat)
    reached = [message for one in window.summaries for message in walk(chat, one.id)]
    wanted = [said(n).content for n in range(1, 3 * LENGTH + 1)]
    same(
        contents([*reached, *window.messages]),
        wanted,
        "Every message is reached once, in order, word for word.",
    )


@case("explore", "compact")
def a_cap_is_kept_and_leads_on(memory: Whole) -> None:
    """Expect at least one item a page, no more than the cap beyond it, and page after page everything."""
    chat, window = compacted(memory)
    one = window.summaries[0]
    for cap in (0, 1, 120):
        found = list(pages(chat, one.id, cap))
        for page in found:
            items = len(page.messages) + len(page.children)
            expect(items > 0, "An expansion has at least one item, so that one gets on.")
            cost = tokens_of(page.messages) + tokens_of(page.children)
            expect(cost <= cap or items == 1, "An expansion keeps to its token cap, but for a first item.")
        expect(
            cap > 1 or (len(found) > 1 and found[0].truncated), "An expansion that the cap cut off says so."
        )
        wanted = seqs(walk(chat, one.id))
        same(seqs(walk(chat, one.id, cap)), wanted, "Page after page, an expansion gives everything.")


@case("explore", "compact")
def a_cursor_of_another_summary_is_refused(memory: Whole) -> None:
    """Expect an error, not the pages of something else."""
    chat, window = compacted(memory)
    refuses(
        lambda: chat.expand(window.summaries[0].id, 1, cursor="no cursor"),
        "`expand` refuses a cursor that it did not give.",
    )
    one, *others = [leaf for leaf in tree(chat) if leaf.depth == 0]
    cursor = chat.expand(one.id, 1).cursor
    for other in others if cursor else ():
        refuses(
            partial(chat.expand, other.id, 1, cursor=cursor),
            "`expand` refuses the cursor of another summary.",
        )
