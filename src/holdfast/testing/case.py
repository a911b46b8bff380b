"""What the suite is made of: cases, and the checks and sample messages that they share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from inspect import getdoc, signature
from reprlib import Repr
from threading import Thread
from typing import TYPE_CHECKING, Literal, ParamSpec, Protocol, cast
from unittest import SkipTest

from holdfast import contract
from holdfast.contract import CAPABILITIES, Capability, Provider, Session, capabilities
from holdfast.errors import HoldfastError
from holdfast.types import Message, ToolCall

if TYPE_CHECKING:
    from holdfast.types import Omission, Prompt, Record, Summary, Window

P = ParamSpec("P")
Group = Capability | Literal["core", "tools"]
Factory = Callable[[], Provider]
"""Make a provider, fresh and empty at each call."""
Reopen = Callable[[Provider], Provider]
"""Make a second provider over the storage of one that has been closed."""

NOT_REOPENED = "NOT CHECKED whether anything lasts: pass `reopen`, which opens the same storage again"

# Seconds after which concurrent calls count as deadlocked.
PATIENCE = 30.0
REFUSALS = (HoldfastError, LookupError, ValueError, PermissionError)
START = datetime(2025, 3, 1, 9, tzinfo=UTC)
QUOKKA = "The quokka sleeps in the harbour."
LISBON, CATS, COACH = "Lives in Lisbon.", "Has two cats.", "A patient coach."

_short = Repr()
_short.maxstring = _short.maxother = 200
_short.maxlist = _short.maxtuple = 12


# What a case sees: a provider that has all that the case needs


class FullChat(
    contract.Session,
    contract.PromptedChat,
    contract.CompactedChat,
    contract.SearchedChat,
    contract.ExploredChat,
    contract.SnapshotChat,
    contract.KeptChat,
    contract.ReviewedChat,
    contract.EndedChat,
    Protocol,
):
    """A chat with all capabilities."""


class FullReading(contract.Reading, contract.Profile, Protocol):
    """What was known at a version, with all that can be known."""

    def records(self, *, kind: str | None = None) -> list[Record]:
        """List the records of then."""


class FullProvider(
    contract.Provider,
    contract.Scopes,
    contract.Recall,
    contract.Records,
    contract.Profile,
    contract.Versions,
    contract.Changes,
    contract.Sessions,
    contract.Timelines,
    contract.Learns,
    contract.Scratchpads,
    Protocol,
):
    """A provider with all capabilities. A case runs only where those that it needs are claimed."""

    def chat(self, id: str, /) -> FullChat:
        """Open a chat."""

    def scoped(self, *, user: str | None = None, agent: str | None = None) -> FullProvider:
        """Return a provider for another user or agent."""

    def at(self, version: int, /) -> FullReading:
        """Return what was known at a version."""


Reopened = Callable[[], FullProvider]


@dataclass(frozen=True, slots=True)
class Case:
    """One promise of the contract, the docstring of `body`, with its group, what it needs, and its check.

    A case that `lasts` is about what is still there when the storage is opened again.
    """

    group: Group
    name: str
    needs: frozenset[Capability]
    body: Callable[..., None]
    lasts: bool = False

    @property
    def promise(self) -> str:
        """The promise, as a sentence."""
        return " ".join((getdoc(self.body) or "").split())

    def run(self, make: Factory, reopen: Reopen | None = None) -> None:
        """Check a fresh provider, and close it.

        Raises:
            SkipTest: the provider does not claim what the case needs, or its storage cannot be opened again.
            PromiseBroken: the provider does not keep the promise; other errors are those of the provider.

        """
        with ExitStack() as opened:
            provider = opened.enter_context(closing(make()))
            if missing := self.needs - capabilities(provider):
                raise SkipTest(f"not claimed: {self.group if self.group in missing else min(missing)}")
            if self.lasts and reopen is None:
                raise SkipTest(NOT_REOPENED)

            def reopened() -> Provider:
                provider.close()
                return opened.enter_context(closing(cast("Reopen", reopen)(provider)))

            try:
                self.body(provider, *([reopened] if self.lasts else []))
            except PromiseBroken as broken:
                broken.add_note(self.promise)
                raise


def case(group: Group, *also: Capability) -> Callable[[Callable[[FullProvider], None]], Case]:
    """Make a case of a function; it needs the capability that is its group, and those named after it."""
    return lambda body: Case(group, body.__name__, _needs(group, also), body)


def lasting(group: Group) -> Callable[[Callable[[FullProvider, Reopened], None]], Case]:
    """Make a case of a function that gets the provider, and a function that closes and reopens it."""
    return lambda body: Case(group, body.__name__, _needs(group), body, lasts=True)


def _needs(group: Group, also: Sequence[Capability] = ()) -> frozenset[Capability]:
    return frozenset((*(name for name in CAPABILITIES if name == group), *also))


# Checks


class PromiseBroken(AssertionError):
    """A provider does not keep a promise; the message says how, beside the promise of the case."""


def expect(holds: object, detail: str = "") -> None:
    """Check that a condition holds.

    Raises:
        PromiseBroken: it does not.

    """
    if not holds:
        raise PromiseBroken(detail)


def same(actual: object, wanted: object, detail: str = "") -> None:
    """Check that two values are equal; `detail` names what is compared, where a case compares several.

    Raises:
        PromiseBroken: it is not; the message shows both, shortened.

    """
    if actual != wanted:
        where = f"{detail}: " if detail else ""
        raise PromiseBroken(f"{where}Expected {_short.repr(wanted)}, found {_short.repr(actual)}.")


def raises(
    errors: tuple[type[Exception], ...], call: Callable[P, object], *args: P.args, **kwargs: P.kwargs
) -> None:
    """Check that a call raises one of some errors.

    Raises:
        PromiseBroken: it returns.

    """
    try:
        result = call(*args, **kwargs)
    except errors:
        return
    name = getattr(call, "__name__", "The call")
    raise PromiseBroken(f"`{name}` with {_short.repr((*args, kwargs))} returned {_short.repr(result)}.")


def refuses(call: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
    """Check that a call is refused with one of the errors that the contract names."""
    raises(REFUSALS, call, *args, **kwargs)


def concurrently(calls: Iterable[Callable[[], object]]) -> None:
    """Make calls on threads of their own, and raise the first error that one of them raised.

    Raises:
        PromiseBroken: they do not return.

    """
    raised: list[BaseException] = []

    def run(call: Callable[[], object]) -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - it is raised on the thread that waits
            raised.append(error)

    threads = [Thread(target=run, args=(call,), daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    if raised:
        raise raised[0]
    running = sum(thread.is_alive() for thread in threads)
    expect(not running, f"{running} concurrent calls did not return within {PATIENCE:.0f} seconds.")


def needs_option(call: Callable[..., object], option: str) -> None:
    """Skip the case unless a method takes an option that the contract leaves open.

    Raises:
        SkipTest: it does not.

    """
    if option not in signature(call).parameters:
        raise SkipTest(f"does not take {option}=")


# Sample messages, and what cases read of results


def minute(n: int) -> datetime:
    """Return the n-th minute of the sample conversation."""
    return START + timedelta(minutes=n)


def sample(n: int) -> Message:
    """Return the n-th message of a conversation, about 50 tokens at minute n; odd ones are of the user."""
    text = (
        f"Crane{n} lifts box{n} to pier{n}." + " Then it rests for a while before the next ship arrives." * 3
    )
    return Message("user" if n % 2 else "assistant", text, at=minute(n))


def fill(chat: Session, messages: int, *, first: int = 1) -> list[Message]:
    """Append messages of the sample conversation, from the number `first` on."""
    return list(chat.append([sample(n) for n in range(first, first + messages)]))


def filled(memory: FullProvider, messages: int, id: str = "c") -> FullChat:
    """Return a chat with messages of the sample conversation."""
    chat = memory.chat(id)
    fill(chat, messages)
    return chat


def say(chat: Session, *texts: str) -> list[Message]:
    """Append texts as messages of a user, one minute apart."""
    return list(chat.append([Message("user", text, at=minute(n)) for n, text in enumerate(texts, 1)]))


def tool_use(n: int, *ids: str) -> list[Message]:
    """Return a question, an assistant's text with tool calls, the results, last first, and the answer."""
    calls = tuple(ToolCall(call, "weigh", {"box": n, "unit": "kg"}) for call in ids)
    results = [Message("tool", f"box {n} weighs {n} kg", call_id=call) for call in reversed(ids)]
    return [
        Message("user", f"How heavy is box {n}?"),
        Message("assistant", "Let me weigh it.", calls=calls),
        *results,
        Message("assistant", f"Box {n} weighs {n} kilograms."),
    ]


def full_window(chat: Session) -> Window:
    """Return a window that all of a chat fits in."""
    return chat.window(1_000_000_000, tail=0)


def messages_of(chat: Session) -> list[Message]:
    """Return all messages that a window of a chat can show."""
    return list(full_window(chat).messages)


def contents(messages: Iterable[Message]) -> list[str]:
    """Return the texts of messages."""
    return [message.content for message in messages]


def seqs(messages: Iterable[Message]) -> list[int]:
    """Return the numbers of messages."""
    return [message.seq for message in messages]


def tokens_of(items: Iterable[Message | Summary | Omission]) -> int:
    """Return the tokens of messages, summaries or omissions."""
    return sum(item.tokens for item in items)


def prompt_text(prompt: Prompt) -> str:
    """Return all text that a prompt shows."""
    return "\n".join([prompt.system, *(str(message.get("content")) for message in prompt.messages)])


def texts(records: Iterable[Record]) -> list[str]:
    """Return the texts of records."""
    return [record.text for record in records]


def text_of(record: Record | None) -> str:
    """Return the text of a record; "" if there is none."""
    return "" if record is None else record.text


def unpaired(messages: Iterable[Message]) -> list[int]:
    """Return the numbers of calls without their results, and of results without their calls."""
    waiting: dict[str, int] = {}
    wrong: list[int] = []
    for message in messages:
        if message.call_id is not None and waiting.pop(message.call_id, None) is None:
            wrong.append(message.seq)
        wrong.extend(waiting[call.id] for call in message.calls if call.id in waiting)
        waiting.update((call.id, message.seq) for call in message.calls)
    return [*wrong, *waiting.values()]
