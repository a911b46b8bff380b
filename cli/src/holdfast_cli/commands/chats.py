"""The commands for chats: list, users, search, review, rename, rewind, branches, archive, end."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from holdfast_cli.commands.find import show_hits
from holdfast_cli.commands.ids import short_ids
from holdfast_cli.commands.lookup import mask_info, the_chat
from holdfast_cli.commands.options import Options, ReadOptions
from holdfast_cli.commands.parameters import ChatId
from holdfast_cli.commands.render.outcomes import quiet
from holdfast_cli.commands.render.screen import Part, count, plain, when
from holdfast_cli.commands.where_option import MetaFilter, join_filters

UNTITLED = "(untitled)"


def chats(
    options: Options,
    *,
    everything: bool = False,
    everyone: bool = False,
    where: list[MetaFilter] | None = None,
    limit: int = 20,
    offset: int = 0,
) -> None:
    """List chats, most recent first; or search, review, rename, rewind, archive or end one.

    For example: holdfast chats --limit 5, or holdfast chats rename porto-trip A week in Porto
    """
    archived = None if everything else False
    with options.open() as memory:
        infos = memory.chats(
            archived=archived, where=join_filters(where), limit=limit + 1, offset=offset, everyone=everyone
        )
        page, more = options.page(map(mask_info, infos), limit, offset)
        short = short_ids(memory, [info.id for info in page]) if not everyone else {}
    columns: dict[str, list[Part]] = {
        "title": [f"{info.title or UNTITLED}{' (archived)' * info.archived}" for info in page],
        "last message": [when(info.newest) for info in page],
        "messages": [f"{info.messages:,}" for info in page],
        "tokens": [f"{info.tokens:,}" for info in page],
        "agent": [info.agent for info in page],
        "channel": [info.channel for info in page],
        "chat": [short.get(info.id, info.id) for info in page],
    }
    if everyone:
        columns["space"] = [info.space for info in page]
    todo = "Import some: `holdfast import PATH…`. Archived ones: `holdfast chats --all`."
    nothing = "No chats here." if everyone else f"No chats{options.whose()} here."
    options.show_list({"chats": plain(page), "more": more}, columns, nothing, todo, whole="chat")


def users(options: Options, *, limit: int | None = None) -> None:
    """List the users of whom something is stored, without what all users share.

    For example: holdfast chats users --db team.db
    """
    with options.open() as memory:
        names, more = options.page(filter(None, memory.grants.users()), limit)
    screen = options.answer({"users": names, "more": more})
    for user in names:
        screen.say(user)
    if not names:
        screen.say("No users here: all that is stored is what all users share.")
    screen.say_more(more)


def search(
    options: ReadOptions,
    *,
    chat: ChatId,
    query: list[str],
    regex: bool = False,
    since: datetime | None = None,
    limit: int = 20,
) -> None:
    """Find messages and summaries of one chat, by words or by a regular expression.

    For example: holdfast chats search porto-trip "train at [0-9]+" --regex
    """
    text = " ".join(query)
    with options.open() as memory:
        title = the_chat(options, memory, chat).title
        hits = memory.chat(chat).search(
            text, limit=limit + 1, regex=regex, since=since, secrets=options.secrets
        )
    page, more = options.page(hits, limit)
    screen = show_hits(options, page, {chat: title}, chat=chat, query=text, more=more)
    screen.say_more(more)
    if not hits:
        screen.say(f"Nothing found in {chat}.")
        screen.say("→ Try other words, or search everywhere with `holdfast recall`.")


def review(
    options: ReadOptions,
    *,
    chat: ChatId,
    since: datetime | None = None,
    limit: int = 200,
) -> None:
    """Write a chat as text for a reviewer: its newest messages, after the summaries of earlier ones.

    For example: holdfast chats review porto-trip --since 7d
    """
    with options.open() as memory:
        title = the_chat(options, memory, chat).title
        text = memory.chat(chat).review(since, limit=limit)
    options.answer({"chat": chat, "title": title, "text": text}).say(text or "No messages in that time.")


def rename(options: Options, *, chat: ChatId, title: list[str]) -> None:
    """Set the title of a chat.

    For example: holdfast chats rename porto-trip A week in Porto
    """
    with options.open() as memory:
        before = the_chat(options, memory, chat).title
        memory.chat(chat).rename(" ".join(title))
        now = the_chat(options, memory, chat).title
    screen = options.answer({"chat": chat, "title": now, "before": before})
    screen.say(("Renamed: ", "bold"), f"{chat} is {now!r}, formerly {before!r}.")


def rewind(options: Options, *, chat: ChatId, seq: int) -> None:
    """Take back all messages of a chat after one. They stay as a branch; `holdfast undo` brings them back.

    For example: holdfast chats rewind porto-trip 12
    """
    with options.open() as memory:
        the_chat(options, memory, chat)
        own = memory.chat(chat)
        before = own.stats().messages
        own.rewind(seq)
        stats = own.stats()
    screen = options.answer({"chat": chat, "messages": stats.messages, "taken_back": before - stats.messages})
    screen.say(("Taken back: ", "bold"), f"{count(before - stats.messages, 'message')} of {chat}.")
    screen.say(f"→ Its branches: {options.line('chats', 'branches', chat)}")


def branches(options: Options, *, chat: ChatId, switch: int | None = None) -> None:
    """List the branches of a chat: what was taken back, and where it goes on; or go to another one.

    For example: holdfast chats branches porto-trip --switch 18
    """
    with options.open() as memory:
        the_chat(options, memory, chat)
        own = memory.chat(chat)
        if switch is not None:
            own.switch(switch)
        every = own.branches()
    columns: dict[str, list[Part]] = {
        "last message": [f"{branch.head}{' (current)' * branch.is_current}" for branch in every],
        "time": [when(branch.newest) if branch.newest else "" for branch in every],
        "messages": [f"{branch.messages:,}" for branch in every],
        "shared": [f"{branch.shared:,}" for branch in every],
        "begins": [branch.text for branch in every],
    }
    document = {"chat": chat, "branches": plain(every), "more": None}
    options.show_list(document, columns, f"No messages in {chat}.", whole="begins")


def archive(options: Options, *, chat: ChatId, undo: bool = False) -> None:
    """Archive a chat: lists omit it; it stays readable and is still found.

    For example: holdfast chats archive porto-trip
    """
    with options.open() as memory:
        the_chat(options, memory, chat)
        memory.chat(chat).archive(archived=not undo)
    screen = options.answer({"chat": chat, "archived": not undo})
    screen.say(("Brought back: " if undo else "Archived: ", "bold"), chat)


def move(
    options: Options,
    *,
    older: timedelta,
    folder: Path,
    archived: bool = False,
    everyone: bool = False,
    dry_run: bool = False,
) -> None:
    """Move old chats to files: each is written with a checksum, read back, and then erased with a receipt.

    What was learned from a chat goes with it; one with a constraint, a pinned record or several branches
    stays. `holdfast import` brings a file back.

    For example: holdfast chats move --older-than 365d --to old --archived --dry-run
    """
    # Loads all formats, which lists of chats do not need.
    from holdfast_cli.formats.old_chats import find_old_chats, move_old_chat

    with options.open() as memory:
        before = datetime.now(UTC) - older
        found = find_old_chats(memory, before, archived=archived, everyone=everyone)
        gone = [old for old in found if not old.why]
        if not dry_run:
            # The files of the database are rewritten once, after the last.
            moved = [
                move_old_chat(memory, old, folder, rewrite=False if old is gone[-1] else None) for old in gone
            ]
            found = [*moved, *(old for old in found if old.why)]
    screen = options.answer({"chats": plain(found), "dry_run": dry_run})
    for old in found:
        screen.say(
            (old.chat.title or UNTITLED, "bold"), f"  ({old.chat.id}{f', {old.chat.space}' * everyone})"
        )
        receipt = f", erased: {old.receipt.id}" if old.receipt else ""
        stays = f"stays: {old.why}"
        screen.say(
            stays if old.why else f"{old.file or count(old.chat.messages, 'message')}{receipt}", indent=4
        )
    if not found:
        options.say_nothing(screen, "No chat is that old.", "Name a shorter time with --older-than.")
    elif dry_run and gone:
        screen.say(f"→ Do it: {options.again(dry_run=False)}")


def end(options: Options, *, chat: ChatId) -> None:
    """Mark a chat as ended, so that the next worker learns from it. It may go on all the same.

    For example: holdfast chats end porto-trip
    """
    with quiet(), options.open() as memory:
        title = the_chat(options, memory, chat).title
        jobs = memory.chat(chat).end()
    screen = options.answer({"chat": chat, "title": title, "jobs": plain(jobs)})
    screen.say((title or chat, "bold"), f"  ({chat})")
    screen.say(f"Queued {count(len(jobs), 'job')}: {', '.join(job.id for job in jobs)}.")
    screen.say(f"→ Run them, with a model by --llm NAME: {options.line('work')}")
