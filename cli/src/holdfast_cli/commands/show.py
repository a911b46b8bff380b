"""The commands that show a chat: show, window."""

from collections.abc import Sequence
from shlex import quote

from holdfast import Memory
from holdfast.errors import InvalidInput
from holdfast.port import prompts
from holdfast.types import ChatInfo, Message, Prompt, Window
from holdfast.types.references import Reference, write_reference
from holdfast_cli.commands.arguments import chat_of
from holdfast_cli.commands.lookup import head, in_its_space, message_range, the_chat
from holdfast_cli.commands.options import ReadOptions
from holdfast_cli.commands.parameters import ChatId
from holdfast_cli.commands.render.messages import show_messages
from holdfast_cli.commands.render.screen import Screen, count, plain
from holdfast_cli.commands.render.summaries import show_summaries


def show(
    options: ReadOptions,
    *,
    chat: str,
    limit: int = 20,
    before: Reference | None = None,
    after: Reference | None = None,
    full: bool = False,
) -> None:
    """Read a chat, oldest message first.

    For example: holdfast show porto-trip, or holdfast show porto-trip#3-7
    """
    with options.open() as own:
        memory, chat = in_its_space(own, chat)
        reference = message_range(memory, chat)
        if reference and (before or after):
            todo = "Leave out --before and --after, or name a chat alone."
            raise InvalidInput(f"{chat} names its messages.", todo)
        if reference:
            show_range(options, memory, reference, full=full)
            return
        info = the_chat(options, memory, chat)
        for end in filter(None, (before, after)):
            chat_of(end, chat)
        page = memory.chat(chat).history(limit, before=before and before.first, after=after and after.first)
        more = None
        if page and after is not None and page[-1].seq < info.messages:
            more = options.again(after=page[-1].seq)
        elif page and after is None and page[0].seq > 1:
            more = options.again(before=page[0].seq)
        _show(options, info, page, more, full=full)


def show_range(options: ReadOptions, memory: Memory, reference: Reference, *, full: bool) -> None:
    """Print the messages of a reference."""
    info = the_chat(options, memory, reference.chat)
    messages = memory.chat(reference.chat).history(after=reference.first - 1, before=reference.last + 1)
    _show(options, info, messages, None, full=full)


def _show(
    options: ReadOptions, info: ChatInfo, messages: Sequence[Message], more: str | None, *, full: bool
) -> None:
    messages = options.mask(messages)
    total = info.messages
    document = {"chat": info.id, "title": info.title, "total": total, "more": more}
    screen = options.answer({**document, "messages": plain(messages, info.id)})
    head(screen, info)
    show_messages(screen, info.id, messages, full=full)
    if not messages:
        screen.say("No messages there.")
    elif len(messages) < total:
        first, last = messages[0].seq, messages[-1].seq
        earlier = f" Earlier: --before {quote(write_reference(info.id, first))}." if first > 1 else ""
        later = f" Later: --after {quote(write_reference(info.id, last))}." if last < total else ""
        screen.say((f"Messages {write_reference(info.id, first, last)} of {total:,}.{earlier}{later}", "dim"))


def window(
    options: ReadOptions, *, chat: ChatId, budget: int = 8_000, query: str | None = None, full: bool = False
) -> None:
    """Show what a model would see of a chat within a budget.

    For example: holdfast window porto-trip --query "when does the train leave?"
    """
    with options.open() as memory:
        prompts.leave_unanswered(memory)
        info = the_chat(options, memory, chat)
        handle = memory.chat(chat)
        prompt = None
        if query is not None:
            prompt = options.mask(handle.prompt(budget, query, secrets=options.secrets))
        selected = prompt.window if prompt else options.mask(handle.window(budget))
    data = {"query": query, "prompt": plain(prompt, chat)} if prompt else {"window": plain(selected, chat)}
    screen = options.answer({"chat": chat, **data})
    head(screen, info)
    if prompt and prompt.system:
        screen.say(("System text", "bold"))
        screen.say(f"{prompt.system}\n", indent=4)
    show_omitted(screen, info.id, selected)
    show_summaries(screen, selected.summaries, full=full)
    show_messages(screen, info.id, selected.messages, full=full)
    if prompt and prompt.hits:
        screen.say(("Recalled, a message before the newest one of the user", "bold"))
        screen.say(f"{prompt.recalled}\n", indent=4)
    show_account(screen, selected, prompt)


def show_omitted(screen: Screen, chat: str, selected: Window, *, gap: bool = True) -> None:
    """Print the omissions of a window, with their reasons, and its shortened messages."""
    for omission in selected.omitted:
        where = write_reference(chat, omission.first, omission.last)
        what = f"{where}, {count(omission.messages, 'message')}, {count(omission.tokens, 'token')}"
        screen.say((f"Left out: {what}: {omission.why}", "yellow"))
    for short in selected.shortened:
        saving = f"{short.saved:,} of {count(short.tokens, 'token')} saved"
        screen.say((f"Shortened: {write_reference(chat, short.seq)}: {saving}", "yellow"))
    if (selected.omitted or selected.shortened) and gap:
        screen.say("")


def show_account(screen: Screen, selected: Window, prompt: Prompt | None) -> None:
    """Print the tokens of a window or a prompt by part."""
    contents = count(len(selected.messages), "message")
    if selected.summaries:
        contents = f"{count(len(selected.summaries), 'summary', 'summaries')}, {contents}"
    if prompt:
        tokens = prompt.tokens
        screen.say(
            ("Prompt: ", "bold"),
            f"{tokens['total']:,} of {count(tokens['budget'], 'token')}: system {tokens['system']:,}, known "
            f"{tokens['known']:,}, recalled {tokens['recalled']:,} ({count(len(prompt.hits), 'turn')}), "
            f"window {tokens['window']:,} ({contents}), free {tokens['free']:,}.",
        )
    else:
        screen.say(("Window: ", "bold"), f"{contents}, {selected.tokens:,} of {selected.budget:,} tokens.")
    if selected.over_budget:
        screen.say("What is always kept of a chat, its newest message at least, takes more than the budget.")
