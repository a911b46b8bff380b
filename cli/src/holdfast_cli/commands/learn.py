"""The commands that learn now: extract, kind, episodes, reflect, consolidate, relearn."""

from collections.abc import Callable, Mapping, Sequence

from holdfast import Memory, Relearning, WorkResult
from holdfast.errors import InvalidInput
from holdfast.kinds import Kind
from holdfast.types.references import Reference
from holdfast_cli.commands.arguments import chat_of, text_of
from holdfast_cli.commands.lookup import the_chat, titles_of
from holdfast_cli.commands.options import Options, given
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
    said = text_of(text or ())
    with outcomes.interruptible(), options.open(create=chat is None) as memory:
        if chat is not None:
            the_chat(options, memory, chat)
        with outcomes.thinking(llm):
            if chat is None:
                done = memory.learning.extract(said, llm=llm)
            else:
                done = memory.chat(chat).extract(messages=span, llm=llm)
    screen = options.answer(plain(done))
    number = outcomes.learned(done.records)
    heading = f"Learned {count(number, 'record')}:" if number else "Nothing new was learned."
    screen.say((heading, "bold"), "" if number or done.job else f" {done.why}")
    outcomes.show_records(screen, done.records, done.dropped)
    if done.job:
        screen.say((done.why, "red"))
        screen.say(f"→ It is left to be done, as job {done.job}: {options.line('work', *given(llm=llm))}")
    screen.facts(("model", outcomes.asked([done], llm) if done.calls else ""))
    outcomes.fail([done.job] if done.job else [])


def episodes(options: Options, *, query: list[str] | None = None, limit: int = 5) -> None:
    """Find what was done in earlier chats: their episodes, best first.

    For example: holdfast learn episodes which migration went wrong
    """
    question = " ".join(query) if query else None
    with outcomes.interruptible(kept="", todo=""), options.open() as memory:
        found = memory.learning.episodes(question, limit=limit + 1)
        shown, more = options.page(found, limit)
        titles = titles_of(memory, [record.chat for record in shown])
        held = sum(one.kind == "episode" for one in memory.quarantine)
    screen = options.answer(
        {"query": question, **plain(found), "episodes": plain(shown), "quarantined": held, "more": more}
    )
    for record in shown:
        screen.say(
            (f"{when(record.at)}  ", "dim"),
            (titles.get(record.chat) or record.chat, "bold"),
            (f"  ({record.chat}, {record.id})", "dim"),
            (f"  {', '.join(marks)}" if (marks := flags(record)) else "", "dim"),
        )
        screen.say(f"{record.text}\n", indent=4)
    screen.say_more(more)
    if not found:
        written = f"{options.line('chats', 'end', 'CHAT')} && {options.line('work')}"
        todo = "Try other words, or none." if question else f"Have one written: {written}"
        what = f"No episodes{options.whose()} {'that answer this' if question else 'yet'}."
        options.say_nothing(screen, what, todo)
    if held:
        why = f"because their chats used external sources: {held:,}"
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
            done = run(memory)
        screen = options.answer(outcomes.described(done))
        outcomes.show_work(screen, options, done, {})
        if done.noop:
            running = [job for job in memory.learning.jobs(status="running") if job.kind == kind]
            busy = max((job.due for job in running if job.due), default=None)
            leased = f"another worker has its lease until {outcomes.until(busy)}"
            why = leased if busy else "there is nothing to do"
            screen.say(f"Nothing was done{options.whose()}: {why}.")
        else:
            screen.say("")
            outcomes.show_cost(screen, [done], llm)
        if done.records:
            screen.say((f"See the changes with their reasons: {options.line('changes')}", "dim"))
    outcomes.fail((*done.postponed, *done.failed))


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
            found = memory.learning.relearn(kind, llm=llm, prompt=prompt, dry_run=dry_run)
        titles = titles_of(memory, (*found.chats, *found.failed))
    screen = options.answer(plain(found))
    if found.chats or found.failed:
        _show_differences(options, screen, found, titles, llm)
    else:
        screen.say(f"Nothing was learned from chats yet{options.whose()}.")
        screen.say(f"→ Learn from one: {options.line('learn', 'extract', '--chat', 'CHAT', '--llm', llm)}")


def _show_differences(
    options: Options, screen: Screen, found: Relearning, titles: Mapping[str, str], llm: str
) -> None:
    """Print what is learned differently, and the command that applies a dry run."""
    for chat in (*found.chats, *found.failed):
        _show_difference(screen, found, chat, titles.get(chat))
    adds, removes = ("Added", "removed") if found.applied else ("Would add", "remove")
    screen.say(
        (f"{adds} {len(found.added):,}, {removes} {len(found.removed):,}", "bold"),
        f", kept {found.kept:,}: {count(len(found.chats), 'chat')}, with {found.prompt}.",
    )
    screen.facts(("model", outcomes.asked([found], llm)))
    if found.applied and (found.added or found.removed):
        screen.say((f"Take back what was changed last, a chat each time: {options.line('undo')}", "dim"))
    elif found.added or found.removed:
        screen.say(f"→ Apply it: {options.again(dry_run=False)}")
    outcomes.fail(found.failed)


def _show_difference(screen: Screen, found: Relearning, chat: str, title: str | None) -> None:
    """Print what is learned differently from a chat, or why it failed."""
    lines = [("−", "red", one) for one in found.removed if one.chat == chat]
    lines += [("+", "green", one) for one in found.added if one.chat == chat]
    error = found.failed.get(chat)
    if not (lines or error):
        return
    screen.say((title or chat, "bold"), (f"  ({chat})", "dim"))
    for sign, style, record in lines:
        screen.say((f"{sign} {record.kind}  {record.text}", style), indent=4, hang=2)
    if error:
        screen.say((in_options(error), "red"), indent=4)
    screen.say("")
