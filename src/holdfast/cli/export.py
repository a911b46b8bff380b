"""The command that writes what is stored: export."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import typer

from holdfast.cli.lookup import the_chat
from holdfast.cli.options import Options
from holdfast.cli.render.screen import Screen, count, listed
from holdfast.errors import InvalidInput

if TYPE_CHECKING:
    from holdfast.io.feedback import ExportedFeedback
    from holdfast.io.record_markdown import ExportedRecords
    from holdfast.memory import Memory


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
    is_whole = everything or feedback or records
    lines = StringIO() if options.json and output is None and not feedback else None
    _check_export(unnamed, chat, "" if records else format, whole=is_whole)
    if lines is not None and (records or format == "markdown"):
        raise InvalidInput("Markdown is no JSON.", "Leave out --json, or write to a file with -o.")
    target = _target(output, force=force, private=everything) if output else nullcontext(sys.stdout)
    with options.open() as memory, target as stream:
        if feedback or records:
            tell = _export_knowledge(options, memory, stream, output, feedback=feedback)
        elif everything:
            tell = _export_all(options, memory, lines or stream, output)
        else:
            ids = [the_chat(options, memory, one).id for one in chat or ()]
            tell = _export_chats(options, memory, lines or stream, output, format, ids or None)
    if lines is None:
        tell()
    else:
        sys.stdout.write("[" + ",\n".join(lines.getvalue().splitlines()) + "]\n")


def _export_knowledge(
    options: Options, memory: "Memory", stream: TextIO, output: Path | None, *, feedback: bool
) -> Callable[[], None]:
    """Write feedback, or records to be edited, and return what tells so."""
    # Only an export needs the exporters.
    from holdfast.io.feedback import export_feedback
    from holdfast.io.record_markdown import export_records

    if feedback:
        return partial(_report_feedback, options, export_feedback(memory, stream), output)
    return partial(_report_records, options, export_records(memory, stream), output)


def _export_all(
    options: Options, memory: "Memory", stream: TextIO, output: Path | None
) -> Callable[[], None]:
    """Write everything, and return what tells so."""
    # Only an export needs the exporters.
    from holdfast.io.everything import export_everything

    rows = dict(export_everything(memory, stream))
    return partial(_report_export, options, rows, output, everything=True, lost={})


def _export_chats(
    options: Options,
    memory: "Memory",
    stream: TextIO,
    output: Path | None,
    format: str,
    chats: list[str] | None,
) -> Callable[[], None]:
    """Write chats, and return what tells so, and what their format cannot hold."""
    # Only an export needs the exporters.
    from holdfast.io.export import ExportedChats, export_chats, export_chats_as

    if format:
        done = export_chats_as(memory, stream, format, chats)
    else:
        done = ExportedChats(export_chats(memory, stream, chats))
    rows = {"messages": done.messages}
    return partial(_report_export, options, rows, output, everything=False, lost=done.left_out)


def _check_export(unnamed: list[str] | None, chat: list[str] | None, format: str, *, whole: bool) -> None:
    if unnamed:
        name = unnamed[0]
        raise typer.BadParameter(
            f"{name!r} is ambiguous: write to a file with -o {name}, or name a chat with --chat {name}."
        )
    if whole and (chat or format):
        what = "--all, --records and --feedback are of all chats, in a form of their own."
        raise InvalidInput(what, "Leave out --chat and --format.")


def _report_feedback(options: Options, done: "ExportedFeedback", output: Path | None) -> None:
    if options.json and output:
        options.answer({**done._asdict(), "file": str(output)})
        return
    screen = Screen(sys.stderr)
    screen.say(f"Exported {count(done.questions, 'question')}{options.whose()} to {output or 'stdout'}.")
    if done.left_out:
        screen.say(f"Left out, without a query or a message that helped: {done.left_out:,}.")


def _report_records(options: Options, done: "ExportedRecords", output: Path | None) -> None:
    if options.json:
        options.answer({"records": done.records, "left_out": dict(done.left_out), "file": str(output)})
        return
    screen = Screen(sys.stderr)
    screen.say(f"Exported {count(done.records, 'record')}{options.whose()} to {output or 'stdout'}.")
    if done.left_out:
        screen.say(f"Left out, by kind: {listed(done.left_out)}. With --all they are exported as well.")


def _report_export(
    options: Options,
    rows: dict[str, int],
    output: Path | None,
    *,
    everything: bool,
    lost: Mapping[str, int],
) -> None:
    # Only an export needs the exporters.
    from holdfast.io.everything import LEFT_OUT

    messages = rows.get("messages", 0)
    if options.json:
        more: dict[str, object] = (
            {"rows": rows} if everything else {"left_out": LEFT_OUT.replace(" and ", ", ").split(", ")}
        )
        more |= {"not_held": dict(lost)} if lost else {}
        options.answer({"messages": messages, "file": str(output), **more})
        return
    screen = Screen(sys.stderr)
    what = (listed(rows) if everything else "") or count(messages, "message")
    screen.say(f"Exported {what}{options.whose()} to {output or 'stdout'}.")
    for reason, number in lost.items():
        screen.say(f"Not held by the format: {number:,} × {reason}.")
    if not everything:
        screen.say(f"Left out: {LEFT_OUT}. With --all they are exported as well.")


@contextmanager
def _target(path: Path, *, force: bool, private: bool) -> Iterator[TextIO]:
    """Write a file whole or not at all: under another name beside it, which takes its place at the end."""
    path = path.resolve()
    if path.exists() and not (force and path.is_file()):
        if path.is_file():
            raise InvalidInput(f"There is a file at {path}.", "Name another one, or add --force.")
        raise InvalidInput(f"There is something that is no file at {path}.", "Name another one.")
    if not path.parent.is_dir():
        raise InvalidInput(f"There is no folder {path.parent}.", "Make it, or name another one.")
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        draft.touch(mode=0o600 if private else 0o666, exist_ok=False)
        with draft.open("w", encoding="utf-8", newline="\n") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
