"""`holdfast demo`: what Holdfast does, on conversations that come with it."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median

from holdfast import Memory
from holdfast.errors import InvalidInput
from holdfast.port.texts import shorten_line
from holdfast.types import Hit, Prompt, Window
from holdfast.types.references import write_reference
from holdfast_cli.commands.find import hit_data, show_hit
from holdfast_cli.commands.options import Options
from holdfast_cli.commands.render.screen import Screen, count, plain, when
from holdfast_cli.commands.show import show_account, show_omitted
from holdfast_cli.demo import Question, questions, sessions

_DEPTH = 5  # hits among which an answer counts as found
_CHAT = "delivery-queue"  # whose window is shown
_WINDOW, _PROMPT = 300, 800  # tokens
_QUERY = "What do we do with a delivery that fails?"
_MEMORY = ":memory:"


@dataclass(frozen=True, slots=True)
class _Reply:
    """A question, its hits, the rank of the answer (0 for none), and the seconds it took."""

    question: Question
    hits: tuple[Hit, ...]
    rank: int
    seconds: float


def demo(options: Options) -> None:
    """Show what Holdfast does, on eight sample chats.

    Imports them, recalls the answers to some questions, and shows the prompt that a model would receive.
    Works in memory; with --db it keeps the sample in that database, which must be empty, to try other
    commands on.

    For example: holdfast demo, or holdfast demo --db sample.db
    """
    with replace(options, db=options.db or _MEMORY).open(create=True) as memory:
        if memory.chats(agent="", archived=None, limit=1):
            what = f"{options.shown_location} has chats already."
            raise InvalidInput(what, "Give the demo a database of its own.")
        # Only an import needs the importers.
        from holdfast_cli.formats.importing import import_paths

        with sessions() as path:
            report = import_paths(memory, path)
        replies = [_ask(memory, question) for question in questions()]
        chat = memory.chat(_CHAT)
        window, prompt = chat.window(_WINDOW), chat.prompt(_PROMPT, _QUERY)
        titles = {info.id: info.title for info in memory.chats(agent="", archived=None)}
    answers = [
        {**asdict(reply.question), "rank": reply.rank or None, "hits": hit_data(reply.hits, titles)}
        for reply in replies
    ]
    numbers = {"chats": len(titles), "messages": report.added, "questions": answers}
    screen = options.answer({**numbers, "window": plain(window, _CHAT), "prompt": plain(prompt.tokens)})
    place = options.shown_location if options.db else "a database in memory; yours is not touched"
    screen.say(
        (f"{count(len(titles), 'conversation')}, {count(report.added, 'message')}", "bold"),
        f", imported in {report.seconds:.2f} s into {place}.",
    )
    screen.say(
        "One person talked to an assistant about many things from March to June. Now some questions. A hit "
        "has a score from 0 to 1, and says why it was found; ✓ marks the one with the answer."
    )
    _show_questions(screen, replies, titles)
    _show_window(screen, titles[_CHAT], window, prompt)
    _show_next(screen, options)


def _ask(memory: Memory, question: Question) -> _Reply:
    start = time.perf_counter()
    hits = tuple(memory.recall(question.question, limit=_DEPTH))
    seconds = time.perf_counter() - start
    answers = [hit.chat == question.answer_in and question.expect in hit.text for hit in hits]
    return _Reply(question, hits, answers.index(True) + 1 if any(answers) else 0, seconds)


def _show_questions(screen: Screen, replies: Sequence[_Reply], titles: Mapping[str, str]) -> None:
    for reply in replies:
        screen.say((f"\n{reply.question.question}", "bold cyan"))
        # The first hit, and the one with the answer.
        for rank in sorted({1, reply.rank} - {0})[: len(reply.hits)]:
            mark = "✓" if rank == reply.rank else " "
            show_hit(screen, mark, reply.hits[rank - 1], titles, reply.question.expect)
        if not reply.rank:
            screen.say(f"The answer is not among the first {_DEPTH}.", indent=2)
    first = sum(reply.rank == 1 for reply in replies)
    usual = median(reply.seconds for reply in replies)
    screen.say(
        (f"\n{first} of {len(replies)} answers come first", "bold"),
        f", at {usual * 1000:.1f} ms a question, without a model, a server or a key.",
    )


def _show_window(screen: Screen, title: str, window: Window, prompt: Prompt) -> None:
    screen.say((f"\nWhat a model would see of “{title}” within {_WINDOW} tokens", "bold cyan"))
    show_omitted(screen, _CHAT, window, gap=False)
    for message in window.messages:
        line = shorten_line(" ".join(message.content.split()), 70)
        calls = "".join(f"  → {call.name}" for call in message.calls)
        head = (f"{write_reference(_CHAT, message.seq)}  {when(message.at)}  ", "dim")
        screen.say(head, (message.actor, "bold"), f"  {line}{calls}")
    show_account(screen, window, None)
    screen.say(
        (f"\nThe prompt for “{_QUERY}” within {_PROMPT} tokens, with what is recalled for it", "bold cyan")
    )
    show_account(screen, prompt.window, prompt)


def _show_next(screen: Screen, options: Options) -> None:
    own = [
        ("holdfast import ~/.claude/projects", "Claude Code sessions; or a ChatGPT export, or JSONL"),
        ("holdfast recall 'what did we decide about …'", "ask"),
        ("holdfast --help", "all commands"),
    ]
    sample = [("holdfast demo --db demo.db", "keep this sample, to try the commands on it")]
    if options.db:
        sample = [
            (options.line("recall", "what did we decide about Redis"), "ask the sample"),
            (options.line("show", _CHAT), "read a chat of it"),
        ]
    screen.say(("\nNext", "bold"))
    for command, meaning in [*own, *sample]:
        screen.say((f"{command:<46}", "bold"), (meaning, "dim"), indent=2)
