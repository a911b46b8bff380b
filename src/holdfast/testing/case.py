"""What the suite is made of: cases, and the few words in which they say what they expect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from inspect import signature
from reprlib import Repr
from threading import Thread
from typing import TYPE_CHECKING, Literal, Protocol, cast
from unittest import SkipTest

from holdfast.contract import (
    CAPABILITIES,
    Capability,
    Changes,
    CompactedChat,
    EndedChat,
    ExploredChat,
    KeptChat,
    Learns,
    Profile,
    PromptedChat,
    Provider,
    Reading,
    Recall,
    Records,
    ReviewedChat,
    Scopes,
    Scratchpads,
    SearchedChat,
    Session,
    Sessions,
    SnapshotChat,
    Versions,
    capabilities,
)
from holdfast.errors import HoldfastError
from holdfast.types import Message, ToolCall

if TYPE_CHECKING:
    from holdfast.types import Prompt, Record, Summary, Window

Group = Capability | Literal["core", "tools"]
Factory = Callable[[], Provider]
"""Make a provider, fresh and empty at each call."""
Reopen = Callable[[Provider], Provider]
"""Make a second provider over the storage of one that has been closed."""

NOT_REOPENED = "NOT CHECKED whether anything lasts: say in `reopen` how to open the same storage again"

PATIENCE = (
    30.0  # seconds that calls at the same time may take before they are taken to wait for each other for ever
)
REFUSALS = (HoldfastError, LookupError, ValueError, PermissionError)
START = datetime(2025, 3, 1, 9, tzinfo=UTC)

_short = Repr()
_short.maxstring = _short.maxother = 200
_short.maxlist = _short.maxtuple = 12


# What a case sees: a provider that has all that the case needs --------------------------------------------------------


class WholeChat(
    Session,
    PromptedChat,
    CompactedChat,
    SearchedChat,
    ExploredChat,
    SnapshotChat,
    KeptChat,
    ReviewedChat,
    EndedChat,
    Protocol,
):
    """A chat with all capabilities."""


class WholeReading(Reading, Protocol):
    """What was known at a version, with all that can be known."""

    def get(self, what: str) -> Record | None:
        """Return a record, or the profile or soul, of then."""

    def records(self, *, kind: str | None = None) -> list[Record]:
        """List the records of then."""


class Whole(
    Provider,
    Scopes,
    Recall,
    Records,
    Profile,
    Versions,
    Changes,
    Sessions,
    Learns,
    Scratchpads,
    Protocol,
):
    """A provider with all capabilities. A case uses those that it needs, and runs only where they are claimed."""

    def chat(self, id: str, /) -> WholeChat:
        """Open a chat."""

    def scoped(self, *, user: str | None = None, agent: str | None = None) -> Whole:
        """Return a provider for another user or agent."""

    def at(self, version: int, /) -> WholeReading:
        """Look at what was known then."""


Body = Callable[[Whole], None]
Again = Callable[[], Whole]
LastingBody = Callable[[Whole, Again], None]


@dataclass(frozen=True, slots=True)
class Case:
    """One thing that is expected of a provider: the group it belongs to, what it needs, and how it is checked.

    A case that `lasts` is about what is still there when the storage is opened again.
    """

    group: Group
    name: str
    needs: frozenset[Capability]
    body: Body | LastingBody
    lasts: bool = False

    def run(self, make: Factory, reopen: Reopen | None = None) -> None:
        """Check a fresh provider, and close it.

        Raises:
            SkipTest: the provider does not claim what the case needs, or nobody says how to open its storage again.
            Broken: it does not do what is expected; and whatever the provider itself raises.

        """
        with ExitStack() as opened:
            provider = opened.enter_context(closing(make()))
            if missing := self.needs - capabilities(provider):
                raise SkipTest(f"not claimed: {self.group if self.group in missing else min(missing)}")
            memory = cast("Whole", provider)
            if not self.lasts:
                cast("Body", self.body)(memory)
                return
            if reopen is None:
                raise SkipTest(NOT_REOPENED)

            def again() -> Whole:
                provider.close()
                return cast("Whole", opened.enter_context(closing(reopen(provider))))

            cast("LastingBody", self.body)(memory, again)


def case(group: Group, *also: Capability) -> Callable[[Body], Case]:
    """Make a case of a function; it needs the capability that is its group, and those named after it."""
    return lambda body: Case(group, body.__name__, _needs(group, also), body)


def lasting(group: Group, *also: Capability) -> Callable[[LastingBody], Case]:
    """Make a case of a function that is given the provider, and what closes it and opens its storage again."""
    return lambda body: Case(group, body.__name__, _needs(group, also), body, lasts=True)


def _needs(group: Group, also: Sequence[Capability]) -> frozenset[Capability]:
    return frozenset((*(name for name in CAPABILITIES if name == group), *also))


# What is expected ------------------------------------------------------------------------------------------------------


class Broken(AssertionError):
    """A provider does not do what the contract says; the message is what was expected."""


def expect(holds: object, what: str) -> None:
    """Go on if something holds; `what` says in a sentence what is expected.

    Raises:
        Broken: it does not.

    """
    if not holds:
        raise Broken(what)


def same(found: object, wanted: object, what: str) -> None:
    """Go on if what was found is what is wanted.

    Raises:
        Broken: it is not; the message shows both, shortened.

    """
    expect(found == wanted, f"{what} Wanted {_short.repr(wanted)}, found {_short.repr(found)}.")


def refuses(call: Callable[[], object], what: str) -> None:
    """Go on if a call raises one of the errors by which a provider refuses something.

    Raises:
        Broken: it raised nothing; any other error passes through.

    """
    try:
        call()
    except REFUSALS:
        return
    raise Broken(f"{what} It raises a HoldfastError, ValueError, LookupError or PermissionError.")


def at_once(calls: Iterable[Callable[[], object]]) -> None:
    """Make all calls at the same time, each on its own thread, and raise what one of them raised.

    Raises:
        Broken: they do not come to an end.

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
    expect(
        not any(thread.is_alive() for thread in threads),
        f"Calls at the same time come to an end; these did not within {PATIENCE:.0f} seconds.",
    )


def only_if_it_takes(call: Callable[..., object], option: str) -> None:
    """Go on if a method takes an option that the contract leaves open.

    Raises:
        SkipTest: it does not.

    """
    if option not in signature(call).parameters:
        raise SkipTest(f"does not take {option}=")


# What is said in cases ---------------------------------------------------------------------------------------------------


def minute(n: int) -> datetime:
    """Return the n-th minute of the conversations in the cases."""
    return START + timedelta(minutes=n)


def said(n: int) -> Message:
    """Return the n-th message of a conversation about cranes, from 1 on: about 50 tokens, at minute n, by turns."""
    text = (
        f"Crane{n} lifts box{n} to pier{n}. " + "Then it rests for a while before the next ship arrives. " * 3
    )
    return Message("user" if n % 2 else "assistant", text.strip(), at=minute(n))


def tell(chat: Session, messages: int, *, first: int = 1) -> list[Message]:
    """Append messages of the conversation about cranes, from the number `first` on."""
    return list(chat.append([said(n) for n in range(first, first + messages)]))


def tool_use(n: int, *ids: str) -> list[Message]:
    """Return a question, an assistant's text with calls of tools, their results, the last first, and the answer."""
    calls = tuple(ToolCall(call, "weigh", {"box": n, "unit": "kg"}) for call in ids)
    results = [Message("tool", f"box {n} weighs {n} kg", call_id=call) for call in reversed(ids)]
    return [
        Message("user", f"How heavy is box {n}?"),
        Message("assistant", "Let me weigh it.", calls=calls),
        *results,
        Message("assistant", f"Box {n} weighs {n} kilograms."),
    ]


def always(answer: str) -> Callable[[str], str]:
    """Be a model that always answers the same."""
    return lambda _: answer


def contents(messages: Iterable[Message]) -> list[str]:
    """Return the words of messages."""
    return [message.content for message in messages]


def tokens_of(items: Iterable[Message | Summary]) -> int:
    """Return what messages and summaries cost together."""
    return sum(one.tokens for one in items)


def seqs(messages: Iterable[Message]) -> list[int]:
    """Return the numbers of messages."""
    return [message.seq for message in messages]


def everything(chat: Session) -> Window:
    """Return a window that all of a chat fits in."""
    return chat.window(1_000_000_000, tail=0)


def shown(prompt: Prompt) -> str:
    """Return all text that a prompt shows."""
    return "\n".join([prompt.system, *(str(message.get("content")) for message in prompt.messages)])


def texts(records: Sequence[Record]) -> list[str]:
    """Return the texts of records."""
    return [record.text for record in records]


def unpaired(messages: Iterable[Message]) -> list[int]:
    """Return the numbers of the calls that have no result in a list of messages, and of the results that have no call."""
    waiting: dict[str, int] = {}
    wrong: list[int] = []
    for message in messages:
        if message.call_id is not None and waiting.pop(message.call_id, None) is None:
            wrong.append(message.seq)
        wrong.extend(waiting[call.id] for call in message.calls if call.id in waiting)
        waiting.update((call.id, message.seq) for call in message.calls)
    return [*wrong, *waiting.values()]


def text_of(record: Record | None) -> str:
    """Return the text of a record; "" if there is none."""
    return "" if record is None else record.text
