"""The commands that learn now: extract, kind, episodes, reflect, consolidate, relearn."""

from collections.abc import Callable, Mapping, Sequence

from holdfast import Memory, Relearning, WorkResult
from holdfast.errors import InvalidInput
from holdfast.kinds import Kind
from holdfast.types.references import Reference
from holdfast_cli.commands.arguments import chat_of, text_of
from holdfast_cli.commands.lookup import the_chat, titles_of
from holdfast_cli.commands.options import Options, args
from holdfast_cli.commands.render import outcomes
from holdfast_cli.commands.render.record_lines import flags
from holdfast_cli.commands.render.screen import Screen, count, plain, when
from holdfast_cli.commands.render.wording import in_options


def learn(options: Options) -> None:
    """Learn now, show what was learned, and see to the jobs.

    For example: holdfast learn episodes which migration went wrong
    """


def extract(
    options: Options,
    *,
    text: list[str] | None = None,
    chat: str | None = None,
    messages: Reference | None = None,
    llm: str | None = None,
) -> None:
    """Extract findings, insights and lessons from a text or a chat now, each with its source.

    Without a model, the sentences that state a decision are kept. Known records are not stored again. If it
    fails, `holdfast work` retries it, and this exits with 1.

    For example: holdfast learn extract --messages porto-trip#3-40 --llm openai:gpt-5-mini
    """
    chat = chat_of(messages, chat) if messages else chat
    span = (messages.first, messages.last) if messages else None
    if (text is None) == (chat is None):
        raise InvalidInput("It is not clear what to learn from.", "Pass a text, or --chat.")
    content = text_of(text or ())
    with outcomes.interruptible(), options.open(create=chat is None) as memory:
        if chat is not None:
            the_chat(options, memory, chat)
        with outcomes.thinking(llm):
            if chat is None:
                result = memory.learning.extract(content, llm=llm)
            else:
                result = memory.chat(chat).extract(messages=span, llm=llm)
    screen = options.answer(plain(result))
    number = outcomes.count_new(result.records)
    heading = f"Learned {count(number, 'record')}:" if number else "Nothing new was learned."
    screen.say((heading, "bold"), "" if number or result.job else f" {result.why}")
    outcomes.show_records(screen, result.records, result.dropped)
    if result.job:
        screen.say((result.why, "red"))
        screen.say(f"→ It is left to be done, as job {result.job}: {options.line('work', *args(llm=llm))}")
    screen.facts(("model", outcomes.model_use([result], llm) if result.calls else ""))
    outcomes.fail([result.job] if result.job else [])


def episodes(options: Options, *, query: list[str] | None = None, limit: int = 5) -> None:
    """Find what was done in earlier chats: their episodes, best first.

    For example: holdfast learn episodes which migration went wrong
    """
    question = " ".join(query) if query else None
    with outcomes.interruptible(kept="", todo=""), options.open() as memory:
        records = memory.learning.episodes(question, limit=limit + 1)
        page, more = options.page(records, limit)
        titles = titles_of(memory, [record.chat for record in page])
        hidden = sum(record.kind == "episode" for record in memory.quarantine)
    screen = options.answer(
        {"query": question, **plain(records), "episodes": plain(page), "quarantined": hidden, "more": more}
    )
    for record in page:
        screen.say(
            (f"{when(record.at)}  ", "dim"),
            (titles.get(record.chat) or record.chat, "bold"),
            (f"  ({record.chat}, {record.id})", "dim"),
            (f"  {', '.join(marks)}" if (marks := flags(record)) else "", "dim"),
        )
        screen.say(f"{record.text}\n", indent=4)
    screen.say_more(more)
    if not records:
        command = f"{options.line('chats', 'end', 'CHAT')} && {options.line('work')}"
        todo = "Try other words, or none." if question else f"Have one written: {command}"
        what = f"No episodes{options.whose()} {'that answer this' if question else 'yet'}."
        options.say_nothing(screen, what, todo)
    if hidden:
        why = f"because their chats used external sources: {hidden:,}"
        screen.say((f"Quarantined, {why}. See: {options.line('quarantine')}", "yellow"))


def reflect(options: Options, *, llm: str) -> None:
    """Have a model reflect on chats with news now, and report what changed.

    It may rewrite the profile and add observations. Exits with 1 if it failed.

    For example: holdfast learn reflect --llm openai:gpt-5-mini
    """
    _learn_now(options, "reflect", llm, lambda memory: memory.learning.reflect(llm=llm))


def consolidate(options: Options, *, llm: str) -> None:
    """Have a model join facts that say the same now, and report what changed.

    Each decision is a change with its reason, which `holdfast undo` takes back. Exits with 1 if it failed.

    For example: holdfast learn consolidate --llm openai:gpt-5-mini
    """
    _learn_now(options, "tidy", llm, lambda memory: memory.learning.consolidate(llm=llm))


def _learn_now(options: Options, kind: str, llm: str, run: Callable[[Memory], WorkResult]) -> None:
    with outcomes.interruptible(), options.open() as memory:
        with outcomes.thinking(llm):
            result = run(memory)
        screen = options.answer(outcomes.work_data(result))
        outcomes.show_work(screen, options, result, {})
        if result.noop:
            running = [job for job in memory.learning.jobs(status="running") if job.kind == kind]
            busy = max((job.due for job in running if job.due), default=None)
            lease = f"another worker has its lease until {outcomes.until(busy)}"
            why = lease if busy else "there is nothing to do"
            screen.say(f"Nothing was done{options.whose()}: {why}.")
        else:
            screen.say("")
            outcomes.show_cost(screen, [result], llm)
        if result.records:
            screen.say((f"See the changes with their reasons: {options.line('changes')}", "dim"))
    outcomes.fail((*result.postponed, *result.failed))


def relearn(
    options: Options,
    *,
    llm: str,
    kind: str = "observations",
    prompt: str | None = None,
    dry_run: bool = False,
) -> None:
    """Learn again from past chats with another prompt or model, and show the difference.

    What the user wrote or changed is left alone. Exits with 1 if a chat failed.

    For example: holdfast learn relearn --prompt v1 --llm openai:gpt-5-mini --dry-run
    """
    _learn_again(options, kind, (), llm=llm, prompt=prompt, dry_run=dry_run)


def kind(
    options: Options,
    *,
    name: str,
    learn: str,
    example: list[str] | None = None,
    llm: str,
    dry_run: bool = False,
) -> None:
    """Learn what you want known from all past chats, as records of a kind of your own; show the difference.

    To have it learned from new chats as well, open the memory with the same: Memory(kinds=[Kind(NAME,
    learn=WHAT, examples=[…])]).

    For example: holdfast learn kind allergy "what one cannot eat" --llm openai:gpt-5-mini --dry-run
    """
    wish = Kind(name, learn=learn, examples=example or ())
    _learn_again(options, name, [wish], llm=llm, prompt=None, dry_run=dry_run)


def _learn_again(
    options: Options, kind: str, kinds: Sequence[Kind], *, llm: str, prompt: str | None, dry_run: bool
) -> None:
    kept = "Nothing was changed." if dry_run else "The chats done until now are learned anew."
    todo = "The same command begins again with the first."
    with outcomes.interruptible(kept, todo), options.open(kinds=kinds) as memory:
        with outcomes.thinking(llm):
            result = memory.learning.relearn(kind, llm=llm, prompt=prompt, dry_run=dry_run)
        titles = titles_of(memory, (*result.chats, *result.failed))
    screen = options.answer(plain(result))
    if result.chats or result.failed:
        _show_differences(options, screen, result, titles, llm)
    else:
        screen.say(f"Nothing was learned from chats yet{options.whose()}.")
        screen.say(f"→ Learn from one: {options.line('learn', 'extract', '--chat', 'CHAT', '--llm', llm)}")


def _show_differences(
    options: Options, screen: Screen, result: Relearning, titles: Mapping[str, str], llm: str
) -> None:
    """Print the differences that a relearning makes, and the command that applies a dry run."""
    for chat in (*result.chats, *result.failed):
        _show_difference(screen, result, chat, titles.get(chat))
    adds, removes = ("Added", "removed") if result.applied else ("Would add", "remove")
    screen.say(
        (f"{adds} {len(result.added):,}, {removes} {len(result.removed):,}", "bold"),
        f", kept {result.kept:,}: {count(len(result.chats), 'chat')}, with {result.prompt}.",
    )
    screen.facts(("model", outcomes.model_use([result], llm)))
    if result.applied and (result.added or result.removed):
        screen.say((f"Take back what was changed last, a chat each time: {options.line('undo')}", "dim"))
    elif result.added or result.removed:
        screen.say(f"→ Apply it: {options.again(dry_run=False)}")
    outcomes.fail(result.failed)


def _show_difference(screen: Screen, result: Relearning, chat: str, title: str | None) -> None:
    """Print the difference that a relearning makes for a chat, or why it failed."""
    lines = [("−", "red", record) for record in result.removed if record.chat == chat]
    lines += [("+", "green", record) for record in result.added if record.chat == chat]
    error = result.failed.get(chat)
    if not (lines or error):
        return
    screen.say((title or chat, "bold"), (f"  ({chat})", "dim"))
    for sign, style, record in lines:
        screen.say((f"{sign} {record.kind}  {record.text}", style), indent=4, hang=2)
    if error:
        screen.say((in_options(error), "red"), indent=4)
    screen.say("")
