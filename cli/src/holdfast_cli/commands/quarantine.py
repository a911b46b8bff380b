"""The commands that guard: quarantine, erase."""

import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import typer

from holdfast import Memory
from holdfast.errors import InvalidInput, Unavailable
from holdfast.port import safety
from holdfast.port.safekeeping import freeze_index
from holdfast.types import Erasure, Record
from holdfast.types.references import Reference, write_reference
from holdfast_cli.commands.arguments import chat_of
from holdfast_cli.commands.lookup import the_chat
from holdfast_cli.commands.options import Options, confirm
from holdfast_cli.commands.render.messages import cut
from holdfast_cli.commands.render.record_lines import kind_name, report, source_of
from holdfast_cli.commands.render.screen import Part, Screen, plain, tally, when
from holdfast_cli.commands.render.wording import in_options
from holdfast_cli.hooks.project import PROJECT

_SHOWN = (40, 4_000)  # lines and characters of a text in quarantine


def quarantine(
    options: Options,
    *,
    release: str | None = None,
    discard: str | None = None,
    release_all: bool = False,
    to: str = "",
    chat: str | None = None,
    limit: int | None = None,
) -> None:
    """List quarantined records with the reason; or release one, those of a chat or all, or discard one.

    They are not recalled and in no prompt until the user releases them. What the guard found is marked, and
    invisible characters are shown by their codes.

    For example: holdfast quarantine, then holdfast quarantine --release rec_00000001615749fe
    """
    if (release is not None) + (discard is not None) + release_all > 1:
        what = "release or discard, not both at once, and one or all."
        raise typer.BadParameter(what, param_hint="--discard")
    if to and release is None:
        raise typer.BadParameter("it goes with --release ID.", param_hint="--to")
    with options.open() as memory:
        version = memory.version()
        if release is not None and to:
            record = memory.quarantine.release(release, to=to, by="user")
            screen = options.answer({"record": plain(record)})
            screen.say(f"Released. It is in {record.space} now, as {record.id}.")
        elif release is not None:
            report(options, memory, memory.quarantine.release(release, by="user"), version)
        elif discard is not None:
            report(options, memory, memory.quarantine.discard(discard, by="user"), version)
        elif release_all:
            records = memory.quarantine.release_all(chat=chat, by="user")
            screen = options.answer({"released": plain(records)})
            screen.say(f"Released {tally({'records': len(records)}) if records else 'nothing'}.")
        else:
            _list_quarantine(options, memory, chat, limit)


def _as_written(memory: Memory, record: Record) -> Record:
    """Return a record with the writer, time and reason of its quarantine, not those of a later undo."""
    changes = (change for change in memory.changes(id=record.id) if change.action == "quarantine")
    held = next(changes, None)
    return replace(record, by=held.by, created=held.at, why=held.why) if held else record


def _list_quarantine(options: Options, memory: Memory, chat: str | None, limit: int | None) -> None:
    queue = (_as_written(memory, record) for record in memory.quarantine if chat in (None, record.chat))
    records, more = options.page(queue, limit)
    screen = options.answer({"quarantine": plain(records), "more": more})
    for record in records:
        _show_held(screen, record)
        screen.say("")
    screen.say_more(more)
    if records:
        screen.say((ways_out(options, "ID"), "dim"))
    else:
        todo = "What looks like an instruction to the model lands here when anyone but the user writes it."
        options.say_nothing(screen, f"Nothing is in quarantine{options.whose()}.", todo)


def ways_out(options: Options, identity: str) -> str:
    """Name the commands that end the quarantine of a record, each at the end of a line, to be pasted."""
    release, discard = (options.line("quarantine", way, identity) for way in ("--release", "--discard"))
    return f"Release one: {release}\nDiscard it: {discard}"


def _show_held(screen: Screen, record: Record) -> None:
    source = source_of(record)
    screen.say(
        (kind_name(record.kind, record.target), "bold yellow"),
        (f"  {when(record.created)}  ", "dim"),
        "by ",
        (record.by, "bold"),
        f" from {source}  " if source else "  ",
        (f"({record.id})", "dim"),
        hang=4,
    )
    text, rest = cut(record.text, *_SHOWN)
    parts, findings = mark_findings(text)
    screen.say(*parts, indent=4)
    if rest:
        screen.say((f"… {rest} more: holdfast records {record.id} shows all", "dim"), indent=4)
    screen.say((f"why: {record.why}{f' ({findings})' if findings else ''}", "dim"), indent=4)
    if record.replaces:
        screen.say((f"It would take the place of {record.replaces}.", "dim"), indent=4)


def mark_findings(text: str) -> tuple[list[Part], str]:
    """Mark the guard's findings in a text, with invisible characters as codes; return their names as well."""
    parts: list[Part] = []
    at = 0
    flags = safety.scan(text)
    for flag in flags:
        start = max(at, flag.start)
        if flag.end > start:
            parts += [text[at:start], (safety.replace_invisible(text[start : flag.end], _hex), "bold yellow")]
            at = flag.end
    return [*parts, text[at:]], ", ".join(dict.fromkeys(flag.message for flag in flags))


def _hex(match: re.Match[str]) -> str:
    return "".join(f"\\u{{{ord(char):x}}}" for char in match.group())


def erase(
    options: Options,
    *,
    chat: str | None = None,
    messages: Reference | None = None,
    record: str | None = None,
    rewrite: bool = False,
    yes: bool = False,
) -> None:
    """Remove words for good, from every table, index and file, and print a receipt without them.

    With --messages, also what was learned in them. With neither --chat nor --record: everything of the
    --team, or else the --project, or else the --user with all projects. Lists what will go, and asks.

    For example: holdfast erase --messages porto-trip#3-7
    """
    chat = chat_of(messages, chat) if messages else chat
    span = (messages.first, messages.last) if messages else None
    whole = _whole(options) if chat is None and record is None else {}
    files = rewrite and chat is record is None and not whole
    if (chat is None) == (record is None) and not whole and not files:
        todo = "Pass one of --chat, --record, and --user, --project, --team or --rewrite alone."
        raise InvalidInput("It is not clear what to erase.", todo)
    with options.open() as memory:
        if not yes and not files:
            _ask(options, *_extent(_memories(memory, whole), chat, span, record))
        try:
            receipt = memory.erase(
                chat=chat, messages=span, record=record, rewrite=rewrite, by="user", **whole
            )
        except InvalidInput:
            if chat is not None:
                the_chat(options, memory, chat)
            raise
        except Unavailable as error:
            if isinstance(error.receipt, Erasure):  # its key is shown this once
                _report(options, error.receipt)
            raise
        # So that the first recall does not wait for it.
        freeze_index(memory)
    _report(options, receipt)


# Any: keywords of `erase`.
def _whole(options: Options) -> dict[str, Any]:
    """Return the user, project or team to erase, which only the command line names; {} for none.

    Raises:
        InvalidInput: a user is named there, and a project of the user in the environment.

    """
    if options.team:
        return {"team": options.team}
    if options.project:
        return {"project": options.project_name}
    if not (options.user and options.user_was_named):
        return {}
    if options.project_name:
        what = f"The user is named, and by ${PROJECT} the project {options.project_name!r}."
        raise InvalidInput(what, f"Pass --project for the project; unset ${PROJECT} for all of the user.")
    return {"user": options.user}


def _memories(memory: Memory, whole: Mapping[str, str]) -> list[Memory]:
    """Return the memories of all spaces that an erasure concerns, the first for a part of one."""
    if not whole:
        return [memory.scoped(agent="")]
    if "team" in whole:
        return [memory.scoped(user="", agent="", team=whole["team"])]
    alone = memory.scoped(agent="", project=whole.get("project", ""), reads=())
    projects = alone.grants.projects() if "user" in whole else []
    return [alone, *(alone.scoped(project=name) for name in projects)]


def _ask(options: Options, what: str, counts: Mapping[str, int]) -> None:
    """Print what an erasure removes, and ask for consent."""
    if not any(counts.values()):
        return  # it is not there: `erase` says so
    # It concerns all agents; a team has no user.
    whose = replace(options, agent="", user="" if options.team else options.user).whose()
    going = f"{what}{whose}, with {tally(counts)}."
    Screen(sys.stderr).say(("This erases for ever: ", "bold red"), going)
    confirm("Erase it?", "This erases for ever", "Pass --yes.")


def _extent(
    memories: Sequence[Memory], chat: str | None, span: tuple[int, int] | None, record: str | None
) -> tuple[str, Mapping[str, int]]:
    """Return a name and the counts of what an erasure removes."""
    memory = memories[0]
    if chat is not None and span is not None:
        return f"messages {write_reference(chat, *span)}", _in_messages(memory, chat, *span)
    if chat is not None:
        return f"chat {chat!r}", _in_chat(memory, chat)
    if record is not None:
        return f"record {record!r}", _in_record(memory, record)
    return "everything", sum(map(Counter, map(_in_all, memories)), Counter[str]())


def _in_chat(memory: Memory, chat: str) -> dict[str, int]:
    ids = {change.id for change in memory.changes() if change.version and change.chat == chat}
    handle = memory.chat(chat)
    return {
        "messages": handle.stats().messages,
        "summaries": len(handle.tree()),
        "records": len(ids),
        "pad names": len(handle.scratchpad),
    }


def _in_messages(memory: Memory, chat: str, first: int, last: int) -> dict[str, int]:
    history = memory.chat(chat).history(last - first + 1, after=first - 1) if 1 <= first <= last else []
    records = [record for record in (*memory.records(chat=chat), *memory.quarantine) if record.chat == chat]
    rows = [row for row in records if row.messages and row.messages[0] <= last and first <= row.messages[1]]
    messages = [message for message in history if message.seq <= last]
    # Every summary that was written after a model had seen these words goes as well.
    summaries = [node for node in memory.chat(chat).tree() if messages and node.last >= messages[0].seq]
    return {"messages": len(messages), "summaries": len(summaries), "records": len(rows)}


def _in_record(memory: Memory, record: str) -> dict[str, int]:
    candidates = [candidate.id for candidate in memory.quarantine if candidate.replaces == record]
    versions = [len(memory.changes(id=identity)) for identity in (record, *candidates)]
    return {"records": sum(number > 0 for number in versions), "versions": sum(versions)}


def _in_all(memory: Memory) -> dict[str, int]:
    chats = memory.chats(archived=None)
    return {
        "messages": sum(info.messages for info in chats),
        "chats": len(chats),
        "records": len({change.id for change in memory.changes() if change.version}),
        "pad names": len(memory.scratchpad),
    }


def _report(options: Options, receipt: Erasure) -> None:
    screen = options.answer({"receipt": plain(receipt)})
    if receipt.counts:
        screen.say(("Erased for ever: ", "bold"), f"{tally(receipt.counts)}.")
    screen.facts(
        ("receipt", receipt.id),
        ("what", receipt.what),
        ("when", when(receipt.at)),
        ("by", receipt.by),
        ("digest", receipt.digest),
        ("key", receipt.key),
        ("rewritten", ", ".join(receipt.rewritten) or "nothing"),
    )
    for part, why in receipt.remains.items():
        screen.say((f"Not written anew: {part}. ", "bold"), f"{in_options(why)}.")
    screen.say(
        "The key is shown only once and is not stored. With it, and only with it, the digest proves what "
        "was erased to who has the words."
    )
