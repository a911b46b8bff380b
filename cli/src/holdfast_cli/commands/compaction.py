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
from holdfast_cli.commands.render.outcomes import interruptible, model_use
from holdfast_cli.commands.render.screen import Screen, count, period, plain, when
from holdfast_cli.commands.render.summaries import Rest, levels, show_head, show_summaries, show_tree
from holdfast_cli.commands.show import show_range

_SUMMARY = "sum_"  # what the ids of summaries begin with
_ANY = "any"  # the id alone finds a summary, through the handle of any chat


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
    # Loaded only for a progress bar.
    from holdfast_cli.commands.render.progress import shrinking

    versions, target = prompt_versions(prompt) or None, prompts.compaction_target(budget)
    with interruptible("The summaries made until now are kept."), options.open() as memory:
        info = the_chat(options, memory, chat)
        handle = memory.chat(chat)
        with shrinking(handle.stats().context_tokens, target) as progress:
            result = handle.compact(full=full, llm=llm, progress=progress, budget=budget, prompts=versions)
    masked = plain(replace(result, summaries=mask(result.summaries)))
    counts = {name: getattr(result, name) for name in ("noop", "leaves", "nodes")}
    document = {"chat": chat, "title": info.title, **counts, "levels": levels(result.summaries)}
    screen = options.answer({**document, **masked, "target": target})
    head(screen, info)
    _show_account(screen, result, budget, llm)
    if not full and result.tokens_after >= target:
        screen.say(f"→ {'Compact it all the same' if result.noop else 'Go on'}: {options.again(full=True)}")
    if not result.noop:
        screen.say((f"\nAll of them as a tree: {_line(options, 'tree', chat)}", "dim"))


def _show_account(screen: Screen, result: CompactionResult, budget: int, llm: str | None) -> None:
    model = model_use([result], llm) if llm else "none: extractive summaries"
    if result.noop:
        screen.say(("Nothing was compacted.", "bold"), f" {result.why}")
        screen.facts(("model", model if result.calls else ""))
        return
    covered = f" of {count(result.messages, 'message')}" if result.messages else ""
    leaves = f"{count(result.leaves, 'leaf', 'leaves')}{covered}" if result.leaves else ""
    made = " and ".join(filter(None, (leaves, f"{result.nodes:,} condensed" if result.nodes else "")))
    screen.say((f"Made {count(len(result.summaries), 'summary', 'summaries')}: ", "bold"), f"{made}.")
    screen.facts(
        ("tokens", f"{result.tokens_before:,} → {result.tokens_after:,}, for a window of {budget:,}"),
        ("levels", ", ".join(f"{number:,} {level}" for level, number in levels(result.summaries).items())),
        ("model", model),
        ("took", f"{result.seconds:.1f} s"),
        ("stopped", result.why),
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
            _show_one(options, memory, options.mask(memory.chat(_ANY).describe(identity)))
            return
        info = the_chat(options, memory, identity)
        handle = memory.chat(identity)
        summaries, stats = options.mask(handle.tree()), handle.stats()
        rest = _rest(handle, summaries, stats)
    page, more = options.page(summaries, limit)
    rest_data = plain(rest._asdict()) if rest else None
    document = {"chat": info.id, "title": info.title, "summaries": plain(page), "unsummarised": rest_data}
    screen = options.answer({**document, "more": more})
    head(screen, info)
    if not summaries:
        screen.say("No summaries: this chat is not compacted.")
        screen.say(f"→ Compact it, once it is long enough: {_line(options, 'compact', info.id)}")
        return
    show_tree(screen, summaries, rest, limit)
    screen.say_more(more)
    behind = f"{stats.summarised:,} of {count(stats.messages, 'message')}"
    screen.say(
        (f"\n{count(len(summaries), 'summary', 'summaries')}", "bold"),
        f" for {behind}; {stats.context_tokens:,} instead of {count(stats.stored_tokens, 'token')}.",
    )
    screen.say((f"Read what is behind one: {_line(options, 'expand', 'ID')}", "dim"))


def _rest(chat: Chat, summaries: Sequence[Summary], stats: ChatStats) -> Rest | None:
    """Describe the messages that no summary covers."""
    frontier = [summary for summary in summaries if not summary.parent]
    first = chat.history(1, after=max((summary.last for summary in frontier), default=0))
    last = chat.history(1)
    if not first or not last:
        return None
    tokens = stats.stored_tokens - sum(summary.source_tokens for summary in frontier)
    times = [message.at for message in (*first, *last) if message.at]
    messages = stats.messages - stats.summarised
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
    with options.open() as own:
        memory, identity = in_its_space(own, identity)
        reference = read_reference(identity)
        if reference and reference.chat:
            if cursor is not None:
                raise InvalidInput(f"{identity} names its messages.", "Leave out --cursor.")
            show_range(options, memory, reference, full=full)
            return
        expansion = options.mask(memory.chat(_ANY).expand(identity, max_tokens, cursor=cursor))
        title = _title(memory, expansion.summary)
    more = options.again(cursor=expansion.cursor) if expansion.cursor else None
    screen = options.answer({**plain(expansion, expansion.summary.chat), "title": title, "more": more})
    screen.say((title or expansion.summary.chat, "bold"), f"  ({expansion.summary.chat})")
    show_head(screen, expansion.summary)
    screen.say("")
    show_summaries(screen, expansion.children, full=full)
    show_messages(screen, expansion.summary.chat, expansion.messages, full=full)
    if not expansion.children and not expansion.messages:
        screen.say("There is no more.")
    if more:
        screen.say((f"Truncated at {_position(expansion)}. Go on: {more}", "yellow"))
    elif expansion.children:
        screen.say((f"What is behind one: {_line(options, 'expand', 'ID')}", "dim"))


def _position(expansion: Expansion) -> str:
    """Return the last message of an expansion, and the range of its summary."""
    node = expansion.summary
    last = expansion.children[-1].last if expansion.children else expansion.messages[-1].seq
    return f"{write_reference(node.chat, last)} of {write_reference(node.chat, node.first, node.last)}"


def _title(memory: Memory, summary: Summary) -> str:
    """Find the title of a summary's chat, in any of the spaces that are read."""
    for place in (memory, *further_memories(memory).values()):
        if summary.id in {node.id for node in place.chat(summary.chat).tree()}:
            info = find_chat(place, summary.chat)
            return info.title if info else ""
    return ""


def _show_one(options: Options, memory: Memory, description: Description) -> None:
    node = description.summary
    title, place = _title(memory, node), write_reference(node.chat, node.first, node.last)
    screen = options.answer({**plain(description, node.chat), "title": title})
    screen.say((title or node.chat, "bold"), f"  ({node.chat})")
    screen.say(("\nSummary", "bold yellow"), f"  {node.id}")
    screen.say(f"{node.text}\n", indent=4)
    screen.facts(
        ("kind", f"{node.kind}, depth {node.depth}"),
        ("messages", f"{place}, {count(node.messages, 'message')}"),
        ("said", period(node.since, node.until)),
        ("tokens", f"{node.tokens:,} instead of {node.source_tokens:,}"),
        ("level", node.level),
        ("model", node.model or "none"),
        ("prompt", node.prompt),
        ("made", when(node.at)),
        ("parents", ", ".join(description.parents) or "none"),
        ("children", ", ".join(description.children) or "the messages"),
    )
    screen.say((f"\nRead what is behind it: {_line(options, 'expand', node.id)}", "dim"))
