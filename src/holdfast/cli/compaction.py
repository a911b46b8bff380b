"""The commands for what stands for older messages: compact, tree, expand, describe."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import typer

from holdfast.chat import Chat
from holdfast.cli.chats import ChatId, head, show_said, the_chat, titles_of
from holdfast.cli.options import INTERRUPTED, Options, Reading, complain
from holdfast.cli.render.messages import show_messages
from holdfast.cli.render.screen import Screen, answer, count, period, plain, when
from holdfast.cli.render.summaries import Rest, levels, show_head, show_summaries, show_tree
from holdfast.memory import Memory
from holdfast.prompt.window import Lossless, SummaryBuffer
from holdfast.safety.masking import masked_message, masked_summary
from holdfast.text.references import read_reference, write_reference
from holdfast.types import ChatStats, CompactionResult, Description, Expansion, Summary

_POLICIES: dict[str, type[Lossless | SummaryBuffer]] = {"lossless": Lossless, "summary-buffer": SummaryBuffer}
_ANY = "any"  # a summary is found by its id alone, whichever chat is asked for it


def _policy(text: str) -> str:
    if text not in _POLICIES:
        raise typer.BadParameter(f"{text!r} is none of {', '.join(_POLICIES)}.")
    return text


_SummaryId = Annotated[
    str, typer.Argument(metavar="ID", help="The id of a summary; `holdfast tree` shows those of a chat.")
]


def compact(
    options: Options,
    *,
    chat: ChatId,
    full: Annotated[
        bool, typer.Option("--full", help="Go on until it is under its target, also if it is not crowded.")
    ] = False,
    budget: Annotated[int, typer.Option(min=0, help="Tokens of the window that it is to fit.")] = 8_000,
    llm: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The model that writes, such as openai:gpt-5-mini; without one, they are sentences of the messages.",
        ),
    ] = None,
    policy: Annotated[
        str,
        typer.Option(
            parser=_policy,
            metavar="|".join(_POLICIES),
            help="A tree of summaries, or one that takes in what is older.",
        ),
    ] = "lossless",
) -> None:
    """Let summaries stand for the older messages of a chat, and say what that took.

    Every message stays, and `holdfast expand` gives it back. Does nothing while the chat is not crowded.
    For example: holdfast compact porto-trip --full --budget 2000
    """
    # Only what takes a while needs a progress bar.
    from holdfast.cli.render.progress import Shrinking

    # As below.
    from holdfast.prompt.window import share_of

    how = _POLICIES[policy](budget)
    target = share_of(budget, how.compaction.target)
    try:
        with options.open() as memory:
            info = the_chat(options, memory, chat)
            opened = memory.chat(chat)
            with Shrinking(opened.stats().context_tokens, target) as progress:
                done = opened.compact(
                    "full" if full else "incremental", llm=llm, progress=progress, policy=how
                )
    except KeyboardInterrupt as error:
        complain(
            "Interrupted. The summaries made until now are kept.", "The same command goes on from there."
        )
        raise typer.Exit(INTERRUPTED) from error
    if options.json:
        answer({"chat": chat, "title": info.title, **_described(done), "target": target})
        return
    screen = Screen()
    head(screen, info)
    _show_account(screen, done, budget, llm)
    if not full and done.tokens_after >= target:
        given = {"--budget": budget, "--llm": llm, "--policy": policy if policy != "lossless" else None}
        again = [part for name, value in given.items() if value is not None for part in (name, value)]
        what = "Compact it all the same" if done.noop else "Go on"
        screen.say(f"→ {what}: {_line(options, 'compact', chat, '--full', *again)}")
    if not done.noop:
        screen.say("")
        screen.say((f"All of them as a tree: {_line(options, 'tree', chat)}", "dim"))


def _described(done: CompactionResult) -> dict[str, object]:
    """Make JSON-compatible data of an account, with what it counts of its summaries."""
    counted = {
        "noop": done.noop,
        "leaves": done.leaves,
        "nodes": done.nodes,
        "levels": levels(done.summaries),
    }
    return {**counted, **plain(replace(done, summaries=tuple(map(masked_summary, done.summaries))))}


def _show_account(screen: Screen, done: CompactionResult, budget: int, llm: str | None) -> None:
    if done.noop:
        screen.say(("Nothing was compacted.", "bold"), f" {done.why}")
        if done.calls:
            screen.facts(("model", _asked(done, llm)))
        return
    covered = f" of {count(done.messages, 'message')}" if done.messages else ""
    made = [
        f"{count(done.leaves, 'leaf', 'leaves')}{covered}" if done.leaves else "",
        f"{done.nodes:,} condensed" if done.nodes else "",
    ]
    screen.say(
        (f"Made {count(len(done.summaries), 'summary', 'summaries')}: ", "bold"),
        " and ".join(filter(None, made)),
        ".",
    )
    screen.facts(
        ("tokens", f"{done.tokens_before:,} → {done.tokens_after:,}, for a window of {budget:,}"),
        ("levels", ", ".join(f"{number:,} {level}" for level, number in levels(done.summaries).items())),
        ("model", _asked(done, llm)),
        ("took", f"{done.seconds:.1f} s"),
        ("stopped", done.why),
    )


def _asked(done: CompactionResult, llm: str | None) -> str:
    if llm is None:
        return "none: the summaries are sentences of the messages"
    tokens = f"{count(done.prompt_tokens, 'token')} of prompts, {done.answer_tokens:,} of answers"
    return f"{llm}, {count(done.calls, 'call')}, {tokens}"


def _line(options: Options, *words: object) -> str:
    """Write a command for the same memory; of whichever agent, as any may compact a chat that another opened."""
    return replace(options, agent="").line(*words)


def tree(options: Reading, *, chat: ChatId) -> None:
    """Draw the summaries of a chat, each with those that it was made of, and the messages that none stands for."""
    with options.open() as memory:
        info = the_chat(options, memory, chat)
        opened = memory.chat(chat)
        summaries, counted = opened.tree(), opened.stats()
        rest = _rest(opened, summaries, counted)
    summaries = list(map(masked_summary, summaries)) if options.masked else summaries
    if options.json:
        left = plain(rest._asdict()) if rest else None
        answer({"chat": chat, "title": info.title, "summaries": plain(summaries), "unsummarised": left})
        return
    screen = Screen()
    head(screen, info)
    if not summaries:
        screen.say("No summaries: all messages of this chat stand for themselves.")
        screen.say(f"→ Make some, once it is crowded: {_line(options, 'compact', chat)}")
        return
    show_tree(screen, summaries, rest)
    screen.say("")
    behind = f"{counted.summarised:,} of {count(counted.messages, 'message')}"
    screen.say(
        (count(len(summaries), "summary", "summaries"), "bold"),
        f" for {behind}; {counted.context_tokens:,} instead of {count(counted.stored_tokens, 'token')}.",
    )
    screen.say((f"What is behind one: {_line(options, 'expand', 'ID')}", "dim"))


def _rest(chat: Chat, summaries: Sequence[Summary], counted: ChatStats) -> Rest | None:
    """Find the messages that no summary stands for."""
    frontier = [one for one in summaries if not one.parent]
    first = chat.history(1, after=max((one.last for one in frontier), default=0))
    last = chat.history(1)
    if not first or not last:
        return None
    tokens = counted.stored_tokens - sum(one.source_tokens for one in frontier)
    times = [one.at for one in (*first, *last) if one.at]
    messages = counted.messages - counted.summarised
    return Rest(messages, first[0].seq, last[0].seq, tokens, min(times), max(times))


def expand(
    options: Reading,
    *,
    identity: Annotated[
        str,
        typer.Argument(
            metavar="ID|CHAT#N-N",
            help="The id of a summary, as `holdfast tree` shows it; or a message, or several, as monday#3-7.",
        ),
    ],
    tokens: Annotated[int, typer.Option(min=0, help="Tokens at most, but always one at least.")] = 4_000,
    cursor: Annotated[
        str | None, typer.Option(metavar="CURSOR", help="Where to go on, from the answer before.")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Do not shorten tool results and other long texts.")
    ] = False,
) -> None:
    """Read what is behind a summary: the original messages, or the summaries that it was made of.

    What does not fit comes with the command that goes on.
    """
    with options.open() as memory:
        said = read_reference(identity)
        if said and said.chat:
            show_said(options, memory, said, full=full)
            return
        found = memory.chat(_ANY).expand(identity, tokens, cursor=cursor)
        title = _title(memory, found.summary)
    found = _masked_expansion(found) if options.masked else found
    if options.json:
        answer({**plain(found, found.summary.chat), "title": title})
        return
    screen = Screen()
    _show_place(screen, found.summary, title)
    show_head(screen, found.summary)
    screen.say("")
    show_summaries(screen, found.children, full=full)
    show_messages(screen, found.summary.chat, found.messages, full=full)
    if not found.children and not found.messages:
        screen.say("There is no more.")
    if found.truncated:
        again = ("--tokens", tokens, "--cursor", found.cursor, *(["--full"] if full else []))
        more = _line(options, "expand", found.summary.id, *again)
        screen.say((f"Truncated at {_reached(found)}. Go on: {more}", "yellow"))
    elif found.children:
        screen.say((f"What is behind one: {_line(options, 'expand', 'ID')}", "dim"))


def _masked_expansion(found: Expansion) -> Expansion:
    return replace(
        found,
        summary=masked_summary(found.summary),
        messages=tuple(map(masked_message, found.messages)),
        children=tuple(map(masked_summary, found.children)),
    )


def _reached(found: Expansion) -> str:
    """Say how far an expansion came."""
    one = found.summary
    last = found.children[-1].last if found.children else found.messages[-1].seq
    return f"{write_reference(one.chat, last)} of {write_reference(one.chat, one.first, one.last)}"


def _title(memory: Memory, summary: Summary) -> str:
    return titles_of(memory, [summary.chat]).get(summary.chat, "")


def _show_place(screen: Screen, summary: Summary, title: str) -> None:
    screen.say((title or summary.chat, "bold"), f"  ({summary.chat})")


def describe(options: Reading, *, identity: _SummaryId) -> None:
    """Show all about a summary: its text, what it stands for, how it came about, and its place in the tree."""
    with options.open() as memory:
        found = memory.chat(_ANY).describe(identity)
        title = _title(memory, found.summary)
    found = replace(found, summary=masked_summary(found.summary)) if options.masked else found
    if options.json:
        answer({**plain(found, found.summary.chat), "title": title})
        return
    screen = Screen()
    _show_place(screen, found.summary, title)
    screen.say("")
    _show_description(screen, found)
    screen.say("")
    screen.say((f"What is behind it: {_line(options, 'expand', found.summary.id)}", "dim"))


def _show_description(screen: Screen, found: Description) -> None:
    one = found.summary
    screen.say(("Summary", "bold yellow"), f"  {one.id}")
    screen.say(one.text, indent=4)
    screen.say("")
    facts = {
        "kind": f"{one.kind}, depth {one.depth}",
        "messages": f"{write_reference(one.chat, one.first, one.last)}, {count(one.messages, 'message')}",
        "said": period(one.since, one.until),
        "tokens": f"{one.tokens:,} instead of {one.source_tokens:,}",
        "level": one.level,
        "model": one.model or "none",
        "made": when(one.at),
        "parents": ", ".join(found.parents) or "none",
        "children": ", ".join(found.children) or "the messages",
    }
    screen.facts(*facts.items())
