"""The command that writes what is stored: export."""

import sys
from contextlib import AbstractContextManager, nullcontext
from io import StringIO
from pathlib import Path
from typing import NamedTuple, TextIO

import typer

from holdfast import Memory
from holdfast.errors import InvalidInput
from holdfast_cli.commands.lookup import the_chat
from holdfast_cli.commands.options import Options
from holdfast_cli.commands.render.screen import Screen, count, tally
from holdfast_cli.formats.new_files import writing_whole


class _Outcome(NamedTuple):
    """The result of an export, in words and as JSON, and notes on what is missing."""

    what: str
    document: dict[str, object]
    notes: list[str]


def export(
    options: Options,
    *,
    unnamed: list[str] | None = None,
    chat: list[str] | None = None,
    output: Path | None = None,
    force: bool = False,
    everything: bool = False,
    feedback: bool = False,
    format: str = "",
    records: bool = False,
) -> None:
    """Write chats as JSONL, which import reads back.

    Each line is a message with its original payload. With --format, a line is a chat as others take it, and
    what that cannot hold is counted. With --all, a line is a row of a table, for Holdfast itself, and only
    its owner can read the file. With --json, one array instead of lines. --records and --feedback write one
    document, with --records Markdown to be edited and imported again.

    For example: holdfast export --chat porto-trip -o porto.jsonl
    """
    lines = StringIO() if options.json and output is None and not feedback else None
    _check_export(unnamed, chat, "" if records else format, whole=everything or feedback or records)
    if lines is not None and (records or format == "markdown"):
        raise InvalidInput("Markdown is no JSON.", "Leave out --json, or write to a file with -o.")
    target = _target(output, force=force, private=everything) if output else nullcontext(sys.stdout)
    with options.open() as memory, target as stream:
        ids = [the_chat(options, memory, name).id for name in chat or ()]
        sort = "feedback" if feedback else "records" if records else "everything" if everything else ""
        outcome = _write(memory, lines or stream, sort, format, ids or None)
    if lines is None:
        _report(options, outcome, output)
    else:
        sys.stdout.write("[" + ",\n".join(lines.getvalue().splitlines()) + "]\n")


def _write(memory: Memory, stream: TextIO, sort: str, format: str, chats: list[str] | None) -> _Outcome:
    """Write an export: "feedback", "records", "everything", or else chats."""
    # Only an export needs the exporters.
    from holdfast_cli.formats import everything, feedback, record_markdown

    if sort == "feedback":
        sums = feedback.export_feedback(memory, stream)
        note = f"Left out, without a query or a message that helped: {sums.left_out:,}."
        return _Outcome(count(sums.questions, "question"), sums._asdict(), [note] if sums.left_out else [])
    if sort == "records":
        totals = record_markdown.export_records(memory, stream)
        note = f"Left out, by kind: {tally(totals.left_out)}. With --all they are exported as well."
        return _Outcome(count(totals.records, "record"), totals._asdict(), [note] if totals.left_out else [])
    if sort == "everything":
        rows = dict(everything.export_everything(memory, stream))
        messages = rows.get("messages", 0)
        return _Outcome(tally(rows) or count(messages, "message"), {"messages": messages, "rows": rows}, [])
    return _write_chats(memory, stream, format, chats)


def _write_chats(memory: Memory, stream: TextIO, format: str, chats: list[str] | None) -> _Outcome:
    # Only an export needs the exporters.
    from holdfast_cli.formats.everything import LEFT_OUT
    from holdfast_cli.formats.export import ExportedChats, export_chats, export_chats_as

    if format:
        result = export_chats_as(memory, stream, format, chats)
    else:
        result = ExportedChats(export_chats(memory, stream, chats))
    not_held = {"not_held": dict(result.left_out)} if result.left_out else {}
    left_out = LEFT_OUT.replace(" and ", ", ").split(", ")
    notes = [f"Not held by the format: {number:,} × {reason}." for reason, number in result.left_out.items()]
    notes.append(f"Left out: {LEFT_OUT}. With --all they are exported as well.")
    document = {"messages": result.messages, "left_out": left_out, **not_held}
    return _Outcome(count(result.messages, "message"), document, notes)


def _check_export(unnamed: list[str] | None, chat: list[str] | None, format: str, *, whole: bool) -> None:
    if unnamed:
        name = unnamed[0]
        ways = f"write to a file with -o {name}, or name a chat with --chat {name}."
        raise typer.BadParameter(f"{name!r} is ambiguous: {ways}")
    if whole and (chat or format):
        what = "--all, --records and --feedback are of all chats, in a form of their own."
        raise InvalidInput(what, "Leave out --chat and --format.")


def _report(options: Options, outcome: _Outcome, output: Path | None) -> None:
    if options.json and output:
        options.answer({**outcome.document, "file": str(output)})
        return
    screen = Screen(sys.stderr)
    screen.say(f"Exported {outcome.what}{options.whose()} to {output or 'stdout'}.")
    for note in outcome.notes:
        screen.say(note)


def _target(path: Path, *, force: bool, private: bool) -> AbstractContextManager[TextIO]:
    """Open a draft beside a file, which takes the place of the file if all of it is written."""
    path = path.resolve()
    if path.is_file() and not force:
        raise InvalidInput(f"There is a file at {path}.", "Name another one, or add --force.")
    if path.exists() and not path.is_file():
        raise InvalidInput(f"There is something that is no file at {path}.", "Name another one.")
    if not path.parent.is_dir():
        raise InvalidInput(f"There is no folder {path.parent}.", "Make it, or name another one.")
    return writing_whole(path, private=private)
