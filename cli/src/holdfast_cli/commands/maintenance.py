"""The commands that count, check and copy: stats, verify, backup, salvage."""

import os
from collections.abc import Iterable
from pathlib import Path

import typer

from holdfast_cli.commands.lookup import the_chat
from holdfast_cli.commands.options import EMBED, Options, Output
from holdfast_cli.commands.render.screen import Screen, count, plain, size, tally, when
from holdfast_cli.commands.render.wording import in_options


def stats(options: Options, *, chat: str | None = None) -> None:
    """Count messages and tokens, of the database or of one chat.

    For example: holdfast stats, or holdfast stats porto-trip
    """
    if chat is not None:
        _chat_stats(options, chat)
        return
    with options.open() as memory:
        infos = memory.chats(archived=None)
    archived = sum(info.archived for info in infos)
    messages = sum(info.messages for info in infos)
    tokens = sum(info.tokens for info in infos)
    oldest = min((info.oldest for info in infos), default=None)
    newest = max((info.newest for info in infos), default=None)
    on_disk = _size_on_disk(options.location)
    totals = {"chats": len(infos), "archived": archived, "messages": messages, "tokens": tokens}
    period = {"oldest": plain(oldest), "newest": plain(newest)}
    embedder = os.environ.get(EMBED, "").strip() or None
    place = {"database": options.shown_location, "bytes": on_disk}
    screen = options.answer({**totals, **period, **place, "embedder": embedder})
    screen.facts(
        ("chats", f"{len(infos):,}" + (f", {archived:,} of them archived" if archived else "")),
        ("messages", f"{messages:,}"),
        ("tokens", f"{tokens:,}"),
        ("from", f"{when(oldest)} to {when(newest)}"),
        ("database", options.shown_location + (f", {size(on_disk)}" if on_disk is not None else "")),
        (
            "recall",
            f"by words and meaning, {embedder}" if embedder else f"by words alone: ${EMBED} is not set",
        ),
    )
    if not infos and (others := options.others()):
        screen.say(f"→ {others}")


def _chat_stats(options: Options, chat: str) -> None:
    with options.open() as memory:
        title = the_chat(options, memory, chat).title
        totals = memory.chat(chat).stats()
    # `info` says what `holdfast chats` lists.
    counts = {name: value for name, value in plain(totals).items() if name != "info"}
    summarised = f", {totals.summarised:,} of them summarised" if totals.summarised else ""
    options.answer({"chat": chat, "title": title, **counts}).facts(
        ("chat", f"{title} ({chat})"),
        ("messages", f"{totals.messages:,}" + summarised),
        ("tokens", f"{totals.stored_tokens:,} stored, {totals.context_tokens:,} as context"),
        ("from", f"{when(totals.oldest)} to {when(totals.newest)}"),
    )


def _size_on_disk(location: str) -> int | None:
    """Return the bytes of a database with SQLite's files beside it; None for a server."""
    if "://" in location:
        return None
    files = (Path(location + ending) for ending in ("", "-wal", "-shm"))
    return sum(path.stat().st_size for path in files if path.exists())


def verify(options: Options, *, repair: bool = False) -> None:
    """Check that every message is stored as it was written, and can be found.

    Exits with 1 if there is a problem. $HOLDFAST_KEY holds the key of the checksums, in hexadecimal digits.

    For example: holdfast verify --db agent.db
    """
    with options.open() as memory:
        report = memory.verify(repair=repair)
    screen = options.answer({"ok": report.ok, **plain(report)})
    if repair:
        screen.say(f"Built the search index again{options.whose()}.")
    screen.say(f"Checked{options.whose()}: {tally(report.checked) or 'nothing, since nothing is stored'}.")
    if report.unproven:
        screen.say(f"{count(report.unproven, 'row')} unproven: written with another key, or without one.")
    _list_problems(screen, report.problems)
    if report.ok:
        screen.say(("No problems.", "bold green"))
        return
    screen.say(f"{count(len(report.problems), 'problem')}.")
    screen.say(
        "→ `holdfast verify --repair` repairs an index; for anything else restore a backup, or save what can "
        "be read with `holdfast salvage`."
    )
    raise typer.Exit(1)


def _list_problems(screen: Screen, problems: Iterable[str]) -> None:
    for problem in problems:
        screen.say(("✗ ", "bold red"), in_options(problem))


def backup(options: Options, *, path: Path) -> None:
    """Copy the whole database into a new file while it is in use, and check the copy.

    The copy is a database of its own, with all users. On PostgreSQL use pg_dump.

    For example: holdfast backup agent-backup.db
    """
    with options.open() as memory:
        report = memory.backup(path)
    length = path.stat().st_size
    screen = options.answer({"file": str(path), "bytes": length, **plain(report)})
    screen.say(f"Copied {options.shown_location} to {path}, {size(length)}, and checked it.")
    _list_problems(screen, (f"As in the original: {problem}." for problem in report.problems))


def salvage(options: Output, *, damaged: Path, new: Path) -> None:
    """Write what can be read of a damaged file into a new database, and list what is missing.

    The damaged file is only read; nobody must write to it meanwhile. Exits with 1 if anything is missing.

    For example: holdfast salvage agent.db saved.db
    """
    # Only for a file that is damaged.
    from holdfast.port.safekeeping import salvage as save

    report = save(damaged, new)
    screen = options.answer({"file": str(new), **plain(report)})
    screen.say(f"Saved into {new}: {tally(report.rows) or 'nothing'}.")
    _list_problems(screen, report.lost)
    if not report.lost:
        screen.say("Nothing that can be noticed is missing.")
        return
    screen.say("→ Look for the rest in a backup, if there is one.")
    raise typer.Exit(1)
