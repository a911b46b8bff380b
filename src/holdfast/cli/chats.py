"""The commands for chats: chats and what is done to one, show, window, review."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from shlex import quote
from typing import Annotated, cast

import typer

from holdfast.cli.arguments import message_of, moment, read_message
from holdfast.cli.options import Options, ReadOptions
from holdfast.cli.render.messages import show_messages
from holdfast.cli.render.outcomes import quiet
from holdfast.cli.render.screen import Screen, answer, count, plain, say_more, when
from holdfast.cli.render.summaries import show_summaries
from holdfast.errors import InvalidInput
from holdfast.memory import Memory
from holdfast.runtime import runtime_of
from holdfast.safety.guard import Secrets, mask_name, mask_values, masked_message, masked_summary
from holdfast.text.references import Reference, read_reference, write_reference
from holdfast.types import ChatInfo, Message, Prompt, Window

ChatId = Annotated[str, typer.Argument(metavar="CHAT", help="The id of a chat; `holdfast chats` lists them.")]


def chats(
    options: Options,
    *,
    archived: Annotated[bool, typer.Option("--archived", help="Only archived chats.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Include archived chats.")] = False,
    channel: Annotated[
        str | None, typer.Option(help="Only chats of this channel; '' for those that have none.")
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="At most so many.")] = 20,
    offset: Annotated[int, typer.Option(min=0, help="Leave out so many of the first.")] = 0,
) -> None:
    """List chats, most recent first; or rename, archive or end one.

    For example: holdfast chats --limit 5, or holdfast chats rename porto-trip A week in Porto
    """
    with options.open() as memory:
        listed = memory.chats(
            archived=None if every else archived, channel=channel, limit=limit + 1, offset=offset
        )
        listed = list(map(_titled, listed))
    shown, more = listed[:limit], len(listed) > limit
    if options.json:
        answer({"chats": plain(shown), "more": more})
        return
    screen = Screen()
    if not shown:
        where = f" of the channel {channel!r}" if channel else ""
        screen.say(f"No {'archived ' if archived and not every else ''}chats{where}{options.whose()} here.")
        others = options.others()
        screen.say(
            f"→ {others or 'Import some: `holdfast import PATH…`. Archived ones: `holdfast chats --all`.'}"
        )
        return
    has_agents = any(info.agent for info in shown)
    has_channels = any(info.channel for info in shown)
    rows = [_chat_row(info, agent=has_agents, channel=has_channels) for info in shown]
    more_columns = [*(["agent"] if has_agents else []), *(["channel"] if has_channels else [])]
    screen.table(["chat", "title", "messages", "tokens", "last message", *more_columns], rows)
    say_more(screen, more=more, offset=offset + limit)


def users(options: Options) -> None:
    """List the users of whom something is stored, without what all users share.

    For example: holdfast chats users --db team.db
    """
    with options.open() as memory:
        found = [user for user in memory.users() if user]
    if options.json:
        answer({"users": found})
        return
    screen = Screen()
    for user in found:
        screen.say(user)
    if not found:
        screen.say("No users here: all that is stored is what all users share.")


def rename(
    options: Options,
    *,
    chat: ChatId,
    title: Annotated[list[str], typer.Argument(metavar="TITLE", help="The new title; no quotes needed.")],
) -> None:
    """Set the title of a chat.

    For example: holdfast chats rename porto-trip A week in Porto
    """
    with options.open() as memory:
        before = the_chat(options, memory, chat).title
        memory.chat(chat).rename(" ".join(title))
        now = the_chat(options, memory, chat).title
    if options.json:
        answer({"chat": chat, "title": now, "before": before})
    else:
        Screen().say(("Renamed: ", "bold"), f"{chat} is {now!r}, formerly {before!r}.")


def archive(
    options: Options,
    *,
    chat: ChatId,
    undo: Annotated[bool, typer.Option("--undo", help="Bring an archived chat back.")] = False,
) -> None:
    """Archive a chat: lists omit it; it stays readable and is still found.

    For example: holdfast chats archive porto-trip
    """
    with options.open() as memory:
        the_chat(options, memory, chat)
        memory.chat(chat).archive(archived=not undo)
    if options.json:
        answer({"chat": chat, "archived": not undo})
    else:
        Screen().say(("Brought back: " if undo else "Archived: ", "bold"), chat)


def end(options: Options, *, chat: ChatId) -> None:
    """Mark a chat as ended, so that the next worker learns from it. It may go on all the same.

    For example: holdfast chats end porto-trip
    """
    with quiet(), options.open() as memory:
        title = the_chat(options, memory, chat).title
        queued = memory.chat(chat).end()
    if options.json:
        answer({"chat": chat, "title": title, "jobs": plain(queued)})
        return
    screen = Screen()
    screen.say((title or chat, "bold"), f"  ({chat})")
    screen.say(f"Queued {count(len(queued), 'job')}: {', '.join(job.id for job in queued)}.")
    screen.say(f"→ Run them: {options.line('work')}, with a model by --llm NAME.")


def review(
    options: ReadOptions,
    *,
    chat: ChatId,
    since: Annotated[
        datetime | None,
        typer.Option(parser=moment, metavar="7d|24h|DATE", help="Only messages from this time on."),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="The newest so many messages.")] = 200,
    budget: Annotated[int | None, typer.Option(min=0, help="Tokens at most; all without it.")] = None,
) -> None:
    """Write a chat as text for a reviewer: its messages, after the summaries of earlier ones.

    For example: holdfast review porto-trip --since 7d
    """
    with options.open() as memory:
        info = the_chat(options, memory, chat)
        text = memory.chat(chat).review(since, limit=limit, budget=budget)
    if options.json:
        answer({"chat": chat, "title": info.title, "text": text})
    else:
        Screen().say(text or "No messages in that time.")


def _chat_row(info: ChatInfo, *, agent: bool, channel: bool) -> list[str]:
    title = f"{info.title} (archived)" if info.archived else info.title
    row = [info.id, title, f"{info.messages:,}", f"{info.tokens:,}", when(info.newest)]
    return [*row, *([info.agent] if agent else []), *([info.channel] if channel else [])]


_Chat = Annotated[
    str,
    typer.Argument(
        metavar="CHAT|CHAT#N-N",
        help="The id of a chat, which `holdfast chats` lists; or a message, or several, as monday#3-7.",
    ),
]
_Limit = Annotated[
    int, typer.Option(min=0, help="Of a chat, at most so many, the newest unless --after is given.")
]
_Before = Annotated[
    Reference | None,
    typer.Option(parser=read_message, metavar="N|CHAT#N", help="Only messages before this one."),
]
_After = Annotated[
    Reference | None,
    typer.Option(
        parser=read_message, metavar="N|CHAT#N", help="Only messages after this one, the first of them."
    ),
]
_Full = Annotated[bool, typer.Option("--full", help="Do not shorten tool results and other long texts.")]


def show(
    options: ReadOptions,
    *,
    chat: _Chat,
    limit: _Limit = 20,
    before: _Before = None,
    after: _After = None,
    full: _Full = False,
) -> None:
    """Read a chat, oldest message first.

    For example: holdfast show porto-trip, or holdfast show porto-trip#3-7
    """
    with options.open() as memory:
        said = messages_meant(memory, chat)
        if said is None:
            info = the_chat(options, memory, chat)
            ends = (message_of(chat, before), message_of(chat, after))
            found = memory.chat(chat).history(limit, before=ends[0], after=ends[1])
            _show(options, memory, info, found, full=full)
        elif before or after:
            raise InvalidInput(
                f"{chat} names its messages.", "Leave out --before and --after, or name a chat alone."
            )
        else:
            show_said(options, memory, said, full=full)


def messages_meant(memory: Memory, text: str) -> Reference | None:
    """Read which messages are referred to; None if it is the id of a chat, which may look alike."""
    said = read_reference(text)
    return said if said and said.chat and find_chat(memory, text) is None else None


def show_said(options: ReadOptions, memory: Memory, said: Reference, *, full: bool) -> None:
    """Print the messages that are referred to."""
    chat, first, last = said
    info = the_chat(options, memory, chat)
    found = memory.chat(chat).history(after=first - 1, before=last + 1)
    _show(options, memory, info, found, full=full)


def _show(
    options: ReadOptions, memory: Memory, info: ChatInfo, messages: Sequence[Message], *, full: bool
) -> None:
    messages = [masked_message(one) for one in messages] if options.masked else messages
    total = memory.chat(info.id).stats().messages
    if options.json:
        shown = plain(messages, info.id)
        answer({"chat": info.id, "title": info.title, "total": total, "messages": shown})
        return
    screen = Screen()
    head(screen, info)
    show_messages(screen, info.id, messages, full=full)
    if not messages:
        screen.say("No messages there.")
    elif len(messages) < total:
        first, last = messages[0].seq, messages[-1].seq
        earlier = f" Earlier: --before {quote(write_reference(info.id, first))}." if first > 1 else ""
        later = f" Later: --after {quote(write_reference(info.id, last))}." if last < total else ""
        shown = write_reference(info.id, first, last)
        screen.say((f"Messages {shown} of {total:,}.{earlier}{later}", "dim"))


_Query = Annotated[
    str | None,
    typer.Option(help="Show the whole prompt for this question, with what is recalled for it."),
]
_WindowFull = Annotated[
    bool, typer.Option("--full", help="Do not shorten tool results and other long texts.")
]


def window(
    options: ReadOptions,
    *,
    chat: ChatId,
    budget: Annotated[int, typer.Option(min=0, help="Tokens at most.")] = 8_000,
    query: _Query = None,
    full: _WindowFull = False,
) -> None:
    """Show what a model would see of a chat within a budget.

    For example: holdfast window porto-trip --query "when does the train leave?"
    """
    with options.open() as memory:
        if runtime := runtime_of(memory):
            # Nobody answers this prompt.
            runtime.prompts.worker = ""
        info = the_chat(options, memory, chat)
        opened = memory.chat(chat)
        secrets = cast("Secrets", options.secrets)
        prompt = opened.prompt(budget, query, secrets=secrets) if query is not None else None
        selected = prompt.window if prompt else opened.window(budget)
    if options.masked:
        selected = _masked_window(selected)
        prompt = _masked_prompt(prompt, selected) if prompt else None
    if options.json:
        what = (
            {"query": query, "prompt": plain(prompt, chat)} if prompt else {"window": plain(selected, chat)}
        )
        answer({"chat": chat, **what})
        return
    _show_window(info, selected, prompt, full=full)


def _show_window(info: ChatInfo, selected: Window, prompt: Prompt | None, *, full: bool) -> None:
    screen = Screen()
    head(screen, info)
    if prompt and prompt.system:
        screen.say(("System text", "bold"))
        screen.say(prompt.system, indent=4)
        screen.say("")
    show_omitted(screen, info.id, selected)
    show_summaries(screen, selected.summaries, full=full)
    show_messages(screen, info.id, selected.messages, full=full)
    if prompt and prompt.hits:
        screen.say(("Recalled, a message before the newest one of the user", "bold"))
        screen.say(recalled_block(prompt), indent=4)
        screen.say("")
    show_account(screen, selected, prompt)


def _masked_window(found: Window) -> Window:
    return replace(
        found,
        messages=tuple(map(masked_message, found.messages)),
        summaries=tuple(map(masked_summary, found.summaries)),
    )


def _masked_prompt(prompt: Prompt, selected: Window) -> Prompt:
    """Mask the messages of a prompt, which are those of the chat itself."""
    messages = [mask_values(message) for message in prompt.messages]
    return replace(prompt, messages=messages, window=selected)


def recalled_block(prompt: Prompt) -> str:
    """Return the recall block of a prompt, "" if there is none."""
    texts = [str(message["content"]) for message in prompt.messages]
    return next((text for text in reversed(texts) if prompt.hits and text.startswith("<recalled>")), "")


def show_omitted(screen: Screen, chat: str, selected: Window, *, gap: bool = True) -> None:
    """Print what a window of a chat leaves out, and why, and what it shows placeholders for."""
    for one in selected.omitted:
        where = write_reference(chat, one.first, one.last)
        what = f"{where}, {count(one.messages, 'message')}, {count(one.tokens, 'token')}"
        screen.say((f"Left out: {what}: {one.why}", "yellow"))
    for short in selected.shortened:
        saved = f"{short.saved:,} of {count(short.tokens, 'token')} saved"
        screen.say((f"Shortened: {write_reference(chat, short.seq)}: {saved}", "yellow"))
    if (selected.omitted or selected.shortened) and gap:
        screen.say("")


def show_account(screen: Screen, selected: Window, prompt: Prompt | None) -> None:
    """Print where the tokens went."""
    messages = count(len(selected.messages), "message")
    summaries = count(len(selected.summaries), "summary", "summaries")
    shown = f"{summaries}, {messages}" if selected.summaries else messages
    if prompt:
        spent = prompt.tokens
        screen.say(
            ("Prompt: ", "bold"),
            f"{spent['total']:,} of {count(spent['budget'], 'token')}: system {spent['system']:,}, "
            f"known {spent['known']:,}, "
            f"recalled {spent['recalled']:,} ({count(len(prompt.hits), 'turn')}), "
            f"window {spent['window']:,} ({shown}), free {spent['free']:,}.",
        )
    else:
        screen.say(("Window: ", "bold"), f"{shown}, {selected.tokens:,} of {selected.budget:,} tokens.")
    if selected.over_budget:
        screen.say("What is always kept of a chat, its newest message at least, takes more than the budget.")


def known_chats(memory: Memory) -> dict[str, ChatInfo]:
    """Find all chats of the user by their ids, of whichever agent."""
    return {info.id: _titled(info) for info in memory.chats(agent="", archived=None)}


def _titled(info: ChatInfo) -> ChatInfo:
    """Mask a title, of which older ones may hold credentials, and the metadata."""
    meta = cast("dict[str, object]", mask_values(info.meta))
    return replace(info, title=mask_name(info.title), meta=meta)


def titles_of(memory: Memory, chats: Iterable[str]) -> dict[str, str]:
    """Find the titles of chats, of which some may be in what all users share."""
    shared = memory.scoped(user="")
    found = (find_chat(memory, chat) or find_chat(shared, chat) for chat in dict.fromkeys(chats) if chat)
    return {info.id: info.title for info in found if info}


def head(screen: Screen, info: ChatInfo) -> None:
    """Print which chat this is."""
    screen.say((info.title or info.id, "bold"), f"  ({info.id})")
    agent = f", agent {info.agent}" if info.agent else ""
    agent += f", channel {info.channel}" if info.channel else ""
    counted = f"{count(info.messages, 'message')}, {count(info.tokens, 'token')}"
    screen.say((f"{counted}, {when(info.oldest)} to {when(info.newest)}{agent}", "dim"))
    screen.say("")


def find_chat(memory: Memory, chat: str) -> ChatInfo | None:
    """Describe a chat of the user, of whichever agent; None if there is none, nor could be."""
    try:
        info = memory.chat(chat).stats().info
    except InvalidInput:  # no id that a chat can have
        return None
    return _titled(info) if info else None


def the_chat(options: Options, memory: Memory, chat: str) -> ChatInfo:
    """Describe the chat that is named.

    Raises:
        InvalidInput: there is none; it says which one may have been meant.

    """
    if found := find_chat(memory, chat):
        return found
    memory.chat(chat)  # says what is wrong with what can be no id
    known = known_chats(memory).values()
    similar = [one.id for one in known if chat.lower() in f"{one.id} {one.title}".lower()]
    meant = f"Did you mean {', '.join(similar[:3])}?" if similar else ""
    raise InvalidInput(
        f"There is no chat {chat!r}{options.whose()} here.",
        meant or options.others() or "`holdfast chats` lists those there are.",
    )
