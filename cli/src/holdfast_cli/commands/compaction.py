"""The commands for summaries: compact, tree, expand."""

from collections.abc import Sequence
from dataclasses import replace

from holdfast import Chat, Memory
from holdfast.errors import InvalidInput
from holdfast.port import prompts
from holdfast.port.handles import further_memories
from holdfast.port.safety import mask
from holdfast.types import ChatStats, CompactionResult, Description, Expansion, Summary
from holdfast.types.references import read_reference, write_reference
from holdfast_cli.commands.arguments import prompt_versions
from holdfast_cli.commands.lookup import find_chat, head, in_its_space, the_chat
from holdfast_cli.commands.options import Options, ReadOptions
from holdfast_cli.commands.parameters import ChatId
from holdfast_cli.commands.render.messages import show_messages
from holdfast_cli.commands.render.outcomes import asked, interruptible
from holdfast_cli.commands.render.screen import Screen, count, period, plain, when
from holdfast_cli.commands.render.summaries import Rest, levels, show_head, show_summaries, show_tree
from holdfast_cli.commands.show import show_said

_SUMMARY = "sum_"  # what the ids of summaries begin with
_ANY = "any"  # a summary is found by its id alone, whichever chat is asked for it


def compact(
    options: Options,
    *,
    chat: ChatId,
    full: bool = False,
    budget: int = 8_000,
    llm: str | None = None,
    prompt: list[str] | None = None,
) -> None:
    """Summarise the older messages of a chat, and report what that took.

    Every message stays, and `holdfast expand` leads back to it. Does nothing while the chat fits its budget.
    Without a model, the summaries are made of sentences of the messages.

    For example: holdfast compact porto-trip --full --budget 2000
    """
    # Only what takes a while needs it.
    from holdfast_cli.commands.render.progress import shrinking

    versions, target = prompt_versions(prompt, "leaf=v1") or None, prompts.compaction_target(budget)
    with interruptible("The summaries made until now are kept."), options.open() as memory:
        info = the_chat(options, memory, chat)
        opened = memory.chat(chat)
        with shrinking(opened.stats().context_tokens, target) as progress:
            done = opened.compact(full=full, llm=llm, progress=progress, budget=budget, prompts=versions)
    screen = options.answer({"chat": chat, "title": info.title, **_described(done), "target": target})
    head(screen, info)
    _show_account(screen, done, budget, llm)
    if not full and done.tokens_after >= target:
        what = "Compact it all the same" if done.noop else "Go on"
        screen.say(f"→ {what}: {options.again(full=True)}")
    if not done.noop:
        screen.say((f"\nAll of them as a tree: {_line(options, 'tree', chat)}", "dim"))


def _described(done: CompactionResult) -> dict[str, object]:
    """Make JSON-compatible data of an account, with what it counts of its summaries."""
    masked = replace(done, summaries=mask(done.summaries))
    counted = {"noop": done.noop, "leaves": done.leaves, "nodes": done.nodes}
    return {**counted, "levels": levels(done.summaries), **plain(masked)}


def _show_account(screen: Screen, done: CompactionResult, budget: int, llm: str | None) -> None:
    model = asked([done], llm) if llm else "none: extractive summaries"
    if done.noop:
        screen.say(("Nothing was compacted.", "bold"), f" {done.why}")
        screen.facts(("model", model if done.calls else ""))
        return
    covered = f" of {count(done.messages, 'message')}" if done.messages else ""
    leaves = f"{count(done.leaves, 'leaf', 'leaves')}{covered}" if done.leaves else ""
    made = " and ".join(filter(None, (leaves, f"{done.nodes:,} condensed" if done.nodes else "")))
    screen.say((f"Made {count(len(done.summaries), 'summary', 'summaries')}: ", "bold"), f"{made}.")
    screen.facts(
        ("tokens", f"{done.tokens_before:,} → {done.tokens_after:,}, for a window of {budget:,}"),
        ("levels", ", ".join(f"{number:,} {level}" for level, number in levels(done.summaries).items())),
        ("model", model),
        ("took", f"{done.seconds:.1f} s"),
        ("stopped", done.why),
    )


def _line(options: Options, *words: object) -> str:
    """Return a command line for the same memory, without the agent: any may compact a chat."""
    return replace(options, agent="").line(*words)


def tree(options: ReadOptions, *, identity: str, limit: int | None = None) -> None:
    """Draw the summaries of a chat as a tree, or show one summary: its text, sources, and place in the tree.

    For example: holdfast tree porto-trip
    """
    with options.open() as memory:
        if identity.startswith(_SUMMARY) and find_chat(memory, identity) is None:
            _show_one(options, memory, options.masked(memory.chat(_ANY).describe(identity)))
            return
        info = the_chat(options, memory, identity)
        opened = memory.chat(identity)
        summaries, counted = options.masked(opened.tree()), opened.stats()
        rest = _rest(opened, summaries, counted)
    shown, more = options.page(summaries, limit)
    left = plain(rest._asdict()) if rest else None
    document = {"chat": info.id, "title": info.title, "summaries": plain(shown), "unsummarised": left}
    screen = options.answer({**document, "more": more})
    head(screen, info)
    if not summaries:
        screen.say("No summaries: this chat is not compacted.")
        screen.say(f"→ Compact it, once it is long enough: {_line(options, 'compact', info.id)}")
        return
    show_tree(screen, summaries, rest, limit)
    screen.say_more(more)
    behind = f"{counted.summarised:,} of {count(counted.messages, 'message')}"
    screen.say(
        (f"\n{count(len(summaries), 'summary', 'summaries')}", "bold"),
        f" for {behind}; {counted.context_tokens:,} instead of {count(counted.stored_tokens, 'token')}.",
    )
    screen.say((f"Read what is behind one: {_line(options, 'expand', 'ID')}", "dim"))


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
    options: ReadOptions,
    *,
    identity: str,
    max_tokens: int = 4_000,
    cursor: str | None = None,
    full: bool = False,
) -> None:
    """Read what is behind a summary: its messages, or the summaries that it condenses.

    What does not fit is reached by the command at the end of the answer.

    For example: holdfast expand sum_314fbda14975a5af, or holdfast expand porto-trip#3-7
    """
    with options.open() as opened:
        memory, identity = in_its_space(opened, identity)
        said = read_reference(identity)
        if said and said.chat:
            if cursor is not None:
                raise InvalidInput(f"{identity} names its messages.", "Leave out --cursor.")
            show_said(options, memory, said, full=full)
            return
        found = options.masked(memory.chat(_ANY).expand(identity, max_tokens, cursor=cursor))
        title = _title(memory, found.summary)
    more = options.again(cursor=found.cursor) if found.cursor else None
    screen = options.answer({**plain(found, found.summary.chat), "title": title, "more": more})
    screen.say((title or found.summary.chat, "bold"), f"  ({found.summary.chat})")
    show_head(screen, found.summary)
    screen.say("")
    show_summaries(screen, found.children, full=full)
    show_messages(screen, found.summary.chat, found.messages, full=full)
    if not found.children and not found.messages:
        screen.say("There is no more.")
    if more:
        screen.say((f"Truncated at {_reached(found)}. Go on: {more}", "yellow"))
    elif found.children:
        screen.say((f"What is behind one: {_line(options, 'expand', 'ID')}", "dim"))


def _reached(found: Expansion) -> str:
    """Return how far an expansion has read."""
    one = found.summary
    last = found.children[-1].last if found.children else found.messages[-1].seq
    return f"{write_reference(one.chat, last)} of {write_reference(one.chat, one.first, one.last)}"


def _title(memory: Memory, summary: Summary) -> str:
    """Find the title of the chat of a summary, in whichever space that is."""
    for place in (memory, *further_memories(memory).values()):
        if summary.id in {one.id for one in place.chat(summary.chat).tree()}:
            info = find_chat(place, summary.chat)
            return info.title if info else ""
    return ""


def _show_one(options: Options, memory: Memory, found: Description) -> None:
    one, title = found.summary, _title(memory, found.summary)
    screen = options.answer({**plain(found, one.chat), "title": title})
    screen.say((title or one.chat, "bold"), f"  ({one.chat})")
    screen.say(("\nSummary", "bold yellow"), f"  {one.id}")
    screen.say(f"{one.text}\n", indent=4)
    screen.facts(
        ("kind", f"{one.kind}, depth {one.depth}"),
        ("messages", f"{write_reference(one.chat, one.first, one.last)}, {count(one.messages, 'message')}"),
        ("said", period(one.since, one.until)),
        ("tokens", f"{one.tokens:,} instead of {one.source_tokens:,}"),
        ("level", one.level),
        ("model", one.model or "none"),
        ("prompt", one.prompt),
        ("made", when(one.at)),
        ("parents", ", ".join(found.parents) or "none"),
        ("children", ", ".join(found.children) or "the messages"),
    )
    screen.say((f"\nRead what is behind it: {_line(options, 'expand', one.id)}", "dim"))
