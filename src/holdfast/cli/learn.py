"""The commands that learn now: extract, episodes, reflect, consolidate, relearn."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, cast

import typer

from holdfast.cli.arguments import MESSAGES, chat_of, read_messages, text_of
from holdfast.cli.chats import known_chats, the_chat
from holdfast.cli.options import Options
from holdfast.cli.render.outcomes import (
    Titles,
    asked,
    described,
    fail,
    interruptible,
    learned,
    prompt_version,
    show_cost,
    show_dropped,
    show_records,
    show_work,
    thinking,
    until,
)
from holdfast.cli.render.record_lines import flags
from holdfast.cli.render.screen import Screen, answer, count, plain, when
from holdfast.cli.render.wording import in_options
from holdfast.errors import InvalidInput
from holdfast.learning.results import Extraction, Relearning, WorkResult
from holdfast.memory import Memory
from holdfast.text.references import Reference
from holdfast.types import Job, Record

if TYPE_CHECKING:
    from holdfast.learning.ranking import Ranking, Strategy

_Model = Annotated[
    str, typer.Option("--llm", metavar="NAME", help="The model that is asked, such as openai:gpt-5-mini.")
]


# extract


_Text = Annotated[
    list[str] | None,
    typer.Argument(metavar="[TEXT]", help="What to learn from; `-` reads standard input."),
]
_Messages = Annotated[
    Reference | None,
    typer.Option(
        parser=read_messages,
        metavar=MESSAGES,
        help="Only from these messages of the chat; otherwise from all new ones.",
    ),
]
_Llm = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The model that reads it; without one, the sentences that tell a decision are kept.",
    ),
]


def extract(
    options: Options,
    *,
    text: _Text = None,
    chat: Annotated[str | None, typer.Option(metavar="CHAT", help="Learn from this chat instead.")] = None,
    messages: _Messages = None,
    step: Annotated[str, typer.Option(help="The name of the step that gave it.")] = "",
    type_: Annotated[str, typer.Option("--type", help="The type of that step, such as GOAL.")] = "",
    llm: _Llm = None,
) -> None:
    """Extract findings, insights and lessons from a text or a chat now, each with its source.

    Known records are not stored again. If it fails, `holdfast work` retries it, and this exits with 1.

    For example: holdfast learn extract --messages porto-trip#3-40 --llm openai:gpt-5-mini
    """
    chat = chat_of(messages, chat) if messages else chat
    span = (messages.first, messages.last) if messages else None
    if (text is None) == (chat is None):
        raise InvalidInput("It is not clear what to learn from.", "Pass a text, or --chat.")
    said = "" if text is None else text_of(text)
    with interruptible(), options.open(create=chat is None) as memory:
        if chat is not None:
            the_chat(options, memory, chat)
        with thinking(llm):
            if chat is None:
                done = memory.learning.extract(said, step=step, type=type_, llm=llm)
            else:
                done = memory.chat(chat).extract(messages=span, step=step, type=type_, llm=llm)
    _report_extraction(options, done, llm)
    fail([done.job] if done.job else [])


def _report_extraction(options: Options, done: Extraction, llm: str | None) -> None:
    if options.json:
        answer(plain(done))
        return
    screen = Screen()
    if number := learned(done.records):
        screen.say((f"Learned {count(number, 'record')}:", "bold"))
    else:
        screen.say(("Nothing new was learned.", "bold"), f" {done.why}" if done.why and not done.job else "")
    show_records(screen, done.records)
    show_dropped(screen, done.dropped)
    if done.job:
        screen.say((done.why, "red"))
        again = options.line("work", *(("--llm", llm) if llm else ()))
        screen.say(f"→ It is left to be done, as job {done.job}: {again}")
    if done.calls:
        screen.facts(("model", asked([done], llm)))


# episodes


_Query = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[QUERY]", help="A question or some words; no quotes needed. Without one, the newest."
    ),
]
_Strategy = Annotated[
    str,
    typer.Option(
        metavar="STRATEGY",
        help="How to rank: index, as recall does; projection, by similar words; recency, newest first; "
        "llm, by a model.",
    ),
]
_EpisodesLlm = Annotated[
    str | None, typer.Option(metavar="NAME", help="The model that ranks, for --strategy llm.")
]


def episodes(
    options: Options,
    *,
    query: _Query = None,
    strategy: _Strategy = "index",
    limit: Annotated[int, typer.Option(min=0, help="At most so many.")] = 5,
    llm: _EpisodesLlm = None,
) -> None:
    """Find what was done in earlier chats: their episodes, best first.

    For example: holdfast learn episodes which migration went wrong
    """
    question = " ".join(query) if query else None
    with interruptible(kept="", todo=""), options.open() as memory:
        with thinking(llm):
            found = memory.learning.episodes(
                question, strategy=cast("Strategy", strategy), limit=limit, llm=llm
            )
        known = known_chats(memory)
        held = [one for one in list(memory.quarantine) if one.kind == "episode"]
    if options.json:
        answer({"query": question, **plain(found), "quarantined": len(held)})
        return
    _show_episodes(options, found, known, held=len(held), asked=bool(question))


def _show_episodes(options: Options, found: "Ranking", titles: Titles, *, held: int, asked: bool) -> None:
    screen = Screen()
    for record in found:
        _show_episode(screen, record, titles)
    if not found:
        screen.say(f"No episodes{options.whose()} {'that answer this' if asked else 'yet'}.")
        if others := options.others():
            screen.say(f"→ {others}")
        elif asked:
            screen.say("→ Try other words, or none.")
        else:
            screen.say(
                f"→ Have one written: {options.line('chats', 'end', 'CHAT')}, then {options.line('work')}"
            )
    if found.why:
        screen.say((f"Ranked by {found.strategy}: {found.why}", "yellow"))
    if held:
        look = options.line("quarantine")
        why = "their chats used external sources"
        screen.say((f"Quarantined, because {why}: {held:,}. See: {look}", "yellow"))


def _show_episode(screen: Screen, record: Record, titles: Titles) -> None:
    title = titles[record.chat].title if record.chat in titles else ""
    screen.say(
        (f"{when(record.at)}  ", "dim"),
        (title or record.chat, "bold"),
        (f"  ({record.chat}, {record.id})", "dim"),
        (f"  {', '.join(marks)}" if (marks := flags(record)) else "", "dim"),
    )
    screen.say(record.text, indent=4)
    screen.say("")


# reflect and consolidate


def reflect(options: Options, *, llm: _Model) -> None:
    """Have a model reflect on chats with news now, and report what changed.

    It may rewrite the profile and add observations. Exits with 1 if it failed.

    For example: holdfast learn reflect --llm openai:gpt-5-mini
    """
    with interruptible(), options.open() as memory:
        with thinking(llm):
            done = memory.learning.reflect(llm=llm)
        _report_now(options, memory, "reflect", done, llm)


def consolidate(options: Options, *, llm: _Model) -> None:
    """Have a model join facts that say the same now, and report what changed.

    Each decision is a change with its reason, which `holdfast undo` takes back. Exits with 1 if it failed.

    For example: holdfast learn consolidate --llm openai:gpt-5-mini
    """
    with interruptible(), options.open() as memory:
        with thinking(llm):
            done = memory.learning.consolidate(llm=llm)
        _report_now(options, memory, "consolidate", done, llm)


def _report_now(options: Options, memory: Memory, kind: str, done: WorkResult, llm: str) -> None:
    if options.json:
        answer(described(done))
    else:
        screen = Screen()
        show_work(screen, options, done, known_chats(memory))
        if done.noop:
            running = [job for job in memory.learning.jobs(status="running") if job.kind == kind]
            screen.say(f"Nothing was done{options.whose()}: {_why_nothing(running)}.")
        else:
            screen.say("")
            show_cost(screen, [done], llm)
        if done.records:
            screen.say((f"See the changes with their reasons: {options.line('changes')}", "dim"))
    fail((*done.postponed, *done.failed))


def _why_nothing(running: Sequence[Job]) -> str:
    """Return why a queued job was not run."""
    busy = max((job.due for job in running if job.due), default=None)
    return f"another worker has its lease until {until(busy)}" if busy else "there is nothing to do"


# relearn


def relearn(
    options: Options,
    *,
    llm: _Model,
    kind: Annotated[str, typer.Option(help="What is learned anew: observations.")] = "observations",
    prompt: Annotated[
        str | None,
        typer.Option(
            parser=prompt_version,
            metavar="VERSION|PATH",
            help="A version of the prompt, such as v1, or a file: a path with a folder, or ending with .md. "
            "The newest without it.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show the difference; the model is asked all the same.")
    ] = False,
) -> None:
    """Learn again from past chats with another prompt or model, and show the difference.

    What the user wrote or changed is left alone. Exits with 1 if a chat failed.

    For example: holdfast learn relearn --prompt v1 --llm openai:gpt-5-mini --dry-run
    """
    kept = "Nothing was changed." if dry_run else "The sessions done until now are learned anew."
    with interruptible(kept, "The same command begins again with the first."), options.open() as memory:
        with thinking(llm):
            found = memory.learning.relearn(kind, llm=llm, prompt=prompt, dry_run=dry_run)
        known = known_chats(memory)
    if options.json:
        answer(plain(found))
    else:
        given = {"--kind": kind if kind != "observations" else None, "--prompt": prompt, "--llm": llm}
        again = [part for name, value in given.items() if value is not None for part in (name, value)]
        _show_relearning(options, found, llm, known, options.line("learn", "relearn", *again))
    fail(found.failed)


def _show_relearning(options: Options, found: Relearning, llm: str, titles: Titles, again: str) -> None:
    screen = Screen()
    if not (found.chats or found.failed):
        screen.say(f"Nothing was learned from sessions yet{options.whose()}.")
        screen.say(f"→ Learn from one: {options.line('learn', 'extract', '--chat', 'CHAT', '--llm', llm)}")
        return
    for chat in (*found.chats, *found.failed):
        removed, added = _of(chat, found.removed), _of(chat, found.added)
        error = found.failed.get(chat, "")
        if removed or added or error:
            _show_session(screen, chat, titles)
            _show_difference(screen, removed, added)
            if error:
                screen.say((in_options(error), "red"), indent=4)
            screen.say("")
    sessions = count(len(found.chats), "session")
    adds, removes = ("Added", "removed") if found.applied else ("Would add", "remove")
    screen.say(
        (f"{adds} {len(found.added):,}, {removes} {len(found.removed):,}", "bold"),
        f", kept {found.kept:,}: {sessions}, with {found.prompt}.",
    )
    screen.facts(("model", asked([found], llm)))
    if found.applied:
        screen.say((f"Take back what was changed last, a session each time: {options.line('undo')}", "dim"))
    elif found.added or found.removed:
        screen.say(f"→ Apply it: {again}")


def _of(chat: str, records: Sequence[Record]) -> list[Record]:
    return [record for record in records if record.chat == chat]


def _show_session(screen: Screen, chat: str, titles: Titles) -> None:
    title = titles[chat].title if chat in titles else ""
    screen.say((title or chat, "bold"), (f"  ({chat})", "dim"))


def _show_difference(screen: Screen, removed: Sequence[Record], added: Sequence[Record]) -> None:
    for sign, style, records in (("−", "red", removed), ("+", "green", added)):
        for record in records:
            screen.say((f"{sign} {record.kind}  {record.text}", style), indent=4, hang=2)
