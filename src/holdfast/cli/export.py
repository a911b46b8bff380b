"""The command that writes what is stored: export."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer
from typer import Argument, Option

from holdfast.cli.lookup import the_chat
from holdfast.cli.options import Options
from holdfast.cli.render.screen import Screen, count, listed
from holdfast.errors import InvalidInput

if TYPE_CHECKING:
    from holdfast.io.feedback import ExportedFeedback
    from holdfast.memory import Memory

_Output = Annotated[
    Path | None, Option("--output", "-o", metavar="FILE", help="Write to a file instead of stdout.")
]
_Everything = Annotated[
    bool,
    Option("--all", help="Everything: summaries, records with all versions, pads, jobs, receipts as well."),
]
_Format = Annotated[
    str,
    Option(
        "--format",
        metavar="FORMAT",
        help="For other programs: openai, anthropic, langgraph (a chat a line), or markdown, to be read.",
    ),
]
_Feedback = Annotated[
    bool,
    Option(
        "--feedback", help="A set of questions instead, with what helped, for `python -m benchmarks recall`."
    ),
]


def export(
    options: Options,
    *,
    unnamed: Annotated[list[str] | None, Argument(hidden=True)] = None,
    chat: Annotated[list[str] | None, Option(metavar="CHAT", help="Only this chat; may be repeated.")] = None,
    output: _Output = None,
    force: Annotated[bool, Option("--force", help="Replace the file if there is one.")] = False,
    everything: _Everything = False,
    feedback: _Feedback = False,
    format: _Format = "",
) -> None:
    """Write chats as JSONL, which import reads back.

    Each line is a message with its original payload. With --format, a line is a chat as others take it, and
    what that cannot hold is counted. With --all, a line is a row of a table, for Holdfast itself, and only
    its owner can read the file. With --json, one array instead of lines. With --feedback, one document.

    For example: holdfast export --chat porto-trip -o porto.jsonl
    """
    # Only an export needs the exporters.
    from holdfast.io.everything import export_everything
    from holdfast.io.feedback import export_feedback

    lines = StringIO() if options.json and output is None else None
    _check_export(unnamed, chat, format, whole=everything or feedback, as_array=lines is not None)
    target = _target(output, force=force, private=everything) if output else nullcontext(sys.stdout)
    lost: Mapping[str, int] = {}
    with options.open() as memory, target as stream:
        if feedback:
            _report_feedback(options, export_feedback(memory, stream), output)
            return
        if everything:
            rows = dict(export_everything(memory, lines or stream))
        else:
            ids = [the_chat(options, memory, one).id for one in chat or ()]
            rows, lost = _export_chats(memory, lines or stream, format, ids or None)
    if lines is None:
        _report_export(options, rows, output, everything=everything, lost=lost)
    else:
        sys.stdout.write("[" + ",\n".join(lines.getvalue().splitlines()) + "]\n")


def _export_chats(
    memory: "Memory", stream: TextIO, format: str, chats: list[str] | None
) -> tuple[dict[str, int], Mapping[str, int]]:
    """Write chats, and return their number of messages and what the format cannot hold."""
    # Only an export needs the exporters.
    from holdfast.io.export import export_chats, export_chats_as

    if not format:
        return {"messages": export_chats(memory, stream, chats)}, {}
    done = export_chats_as(memory, stream, format, chats)
    return {"messages": done.messages}, done.left_out


def _check_export(
    unnamed: list[str] | None, chat: list[str] | None, format: str, *, whole: bool, as_array: bool
) -> None:
    if unnamed:
        name = unnamed[0]
        raise typer.BadParameter(
            f"{name!r} is ambiguous: write to a file with -o {name}, or name a chat with --chat {name}."
        )
    if whole and (chat or format):
        what = "--all and --feedback are of all chats, in a form of their own."
        raise InvalidInput(what, "Leave out --chat and --format.")
    if format == "markdown" and as_array:
        raise InvalidInput("Markdown is no JSON.", "Leave out --json, or write to a file with -o.")


def _report_feedback(options: Options, done: "ExportedFeedback", output: Path | None) -> None:
    if options.json and output:
        options.answer({**done._asdict(), "file": str(output)})
        return
    screen = Screen(sys.stderr)
    screen.say(f"Exported {count(done.questions, 'question')}{options.whose()} to {output or 'stdout'}.")
    if done.left_out:
        screen.say(f"Left out, without a query or a message that helped: {done.left_out:,}.")


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
