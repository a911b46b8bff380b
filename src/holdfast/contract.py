"""The provider contract: what a memory is to those who build on one, as protocols.

A provider opens chats; to append to them, to make windows of them and to count them is the core. Everything
else is a capability that a provider has or has not: it has it if its methods are there, on the provider and
on the chats that it opens. Nothing is declared, so nothing declared can be wrong.

What is not there, such as an unknown id, version or scope, and what is not allowed, is refused: with one of
our errors, or a ValueError, LookupError or PermissionError of one's own. What is refused changes nothing, and
counts no version. Methods may take more than is said here; `compact(llm=…)` and `reflect(llm=…)`, with a
model from text to text, are known to the suite.

`holdfast.Memory` has all of it. Messages, records and results are the types of `holdfast`. `holdfast.testing`
holds a small provider to read, and the suite that checks any.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, get_args

from holdfast.errors import InvalidInput

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.types import (
        Change,
        ChatInfo,
        ChatStats,
        CompactionResult,
        Description,
        Expansion,
        Hit,
        Message,
        Prompt,
        Record,
        Window,
        Writer,
    )
    from holdfast.types.timeline import Timeline

Capability = Literal[
    "scopes",
    "prompt",
    "compact",
    "search",
    "recall",
    "explore",
    "records",
    "profile",
    "versions",
    "snapshots",
    "changes",
    "sessions",
    "timeline",
    "review",
    "learn",
    "scratchpad",
]
CAPABILITIES: tuple[Capability, ...] = get_args(Capability)


# The core -------------------------------------------------------------------------------------------------


class Session(Protocol):
    """One chat of a provider."""

    @property
    def id(self) -> str:
        """Its id."""

    def append(self, messages: Sequence[Message], /) -> list[Message]:
        """Store messages in order, all or none, and return them with their `seq`, from 1 on, and tokens.

        One that comes without an id or a time gets one, the others keep theirs.

        Appends to one chat come one after the other, whoever calls; those to others may go on at the same
        time.
        """

    def window(self, budget: int = 8_000, *, tail: int | None = None) -> Window:
        """Return what a model is to see within a budget, oldest first; `window.omitted` names the rest.

        The newest `tail` messages are always there, whatever they cost. A call is never parted from its
        results. What comes before the first message of a user may be left out, beyond the tail.
        """

    def stats(self) -> ChatStats:
        """Count messages and tokens; all zero for a chat without messages."""


class Provider(Protocol):
    """The core: what every memory can do."""

    @property
    def name(self) -> str:
        """What it is called, in traces and reports; not empty."""

    def chat(self, id: str, /) -> Session:
        """Return a handle on a chat. Nothing is stored: a chat exists from its first message on.

        Ids that differ are different chats, and all handles of one id are one chat.
        """

    def close(self) -> None:
        """Release connections and files. Closing twice is harmless."""


# The capabilities: what a provider has, and what its chats have -------------------------------------------


class Scopes(Protocol):
    """scopes: one store for many users, each of whom sees nothing of another."""

    def scoped(self, *, user: str | None = None, agent: str | None = None) -> Provider:
        """Return a provider for another user or agent on the same store; None keeps what this one has.

        One that is bound to a user may refuse another with Denied; the conformance suite is given one that
        does not.
        """


class PromptedChat(Protocol):
    """prompt: all that is sent to a model, in one budget."""

    def prompt(self, budget: int = 8_000, query: str | None = None, *, system: str = "") -> Prompt:
        """Assemble system text, what is known, the window, and what the query recalls."""


class CompactedChat(Protocol):
    """compact: summaries stand for older messages, none of which is lost."""

    def needs_compaction(self, budget: int = 8_000, threshold: float | None = None) -> bool:
        """Return whether the chat takes more than this share of the budget, and something can be done."""

    def compact(self, *, full: bool = False, budget: int = 8_000) -> CompactionResult:
        """Summarize: once if the chat needs compaction, or, if `full`, until nothing more can be done."""


class SearchedChat(Protocol):
    """search: find messages and summaries of one chat by a text that stands in them."""

    def search(
        self, query: str, scope: Literal["messages", "summaries", "both"] = "both", limit: int = 20
    ) -> list[Hit]:
        """Find a text, or words of it, in any case; no character of it is a wildcard or an operator."""


class Recall(Protocol):
    """recall: find in all chats, and in what is known, what answers a question."""

    def recall(self, query: str, *, limit: int = 10) -> list[Hit]:
        """Find what answers a question, the best first; no character of it is an operator."""


class ExploredChat(Protocol):
    """explore: walk from a summary down to the words that it stands for."""

    def describe(self, id: str) -> Description:
        """Show a summary and what stands above and below it; raise for an id that is unknown or foreign."""

    def expand(self, id: str, max_tokens: int = 4_000, *, cursor: str | None = None) -> Expansion:
        """Read the messages of a leaf, or the summaries below a node: at least one, and on from `cursor`."""


class Records(Protocol):
    """records: what is known beside what was said."""

    def remember(
        self, text: str, kind: str = "fact", *, by: Writer | None = None, chat: str | None = None
    ) -> Record:
        """Store one thing that is known; learned in a `chat`, it is in that chat's next prompt."""

    def replace(self, what: str, text: str, *, by: Writer | None = None) -> Record:
        """Replace the text of the record with the id `what`. A retracted one does not exist."""

    def retract(self, what: str, *, by: Writer | None = None, chat: str | None = None) -> Record:
        """Take a record back; `what` is its id."""

    def records(self, *, kind: str | None = None) -> list[Record]:
        """List what is known, the oldest first."""


class Profile(Protocol):
    """profile: what is in every prompt beside the system text.

    The kind "profile" is one text about the user, "soul" one about what the agent is to this user; `remember`
    writes the whole of it, and `retract` with the name of the kind takes it back. "constraint" is what always
    holds, by the user's own word: adding and removing one is denied unless `by` is "user", also where nobody
    is named.
    """

    def get(self, what: str) -> Record | None:
        """Return a record by its id, or the profile or soul by the name of its kind; None if there is none.

        These two are as prompts show them: that of this agent, else the one of no agent, else one that all
        users share, as far as a provider has these.
        """


class Versions(Protocol):
    """versions: each write of what is known has a number, and any of them can be looked at again."""

    def version(self) -> int:
        """Return the number of the newest version; 0 at first."""

    def at(self, version: int, /) -> Reading:
        """Look at what was known then."""

    def rollback(self, what: str, version: int, *, by: Writer | None = None) -> list[Record]:
        """Write again what a record, or the one text of a kind, was at a version; the user's by default.

        `what` is an id, of a record that may be taken back by now, or a kind; what there never was is
        refused. Where there was no text of the kind yet, as in version 0, the one that is there is taken
        back.
        """


class Reading(Protocol):
    """What was known at a version, with `records` and `get` where the provider has them."""

    def version(self) -> int:
        """Return the number of the version."""


class SnapshotChat(Protocol):
    """snapshots: the prompts of a chat show what was known when it began."""

    def snapshot(self) -> int | None:
        """Return the version that the prompts of the chat show; None before the first."""

    def refresh(self) -> int:
        """Let prompts show the newest version from now on, and return it."""


class Changes(Protocol):
    """changes: what was written when and by whom, with the text before and after."""

    def changes(self, *, kind: str | None = None, limit: int | None = None) -> list[Change]:
        """List what changed, the newest first."""


class Sessions(Protocol):
    """sessions: the list of chats."""

    def chats(
        self, *, archived: bool | None = False, limit: int | None = None, offset: int = 0
    ) -> list[ChatInfo]:
        """List chats, the one with the newest message first; with `archived=None` archived ones as well."""


class Timelines(Protocol):
    """timeline: what was said and learned, by day."""

    def timeline(
        self,
        since: datetime | None = None,
        until: datetime | None = None,
        *,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Timeline:
        """Return the days from a time until before another, oldest first, with the chats that went on.

        At most `limit` chats of a day and changes; `cursor` of the page before leads on.
        """


class KeptChat(Protocol):
    """sessions: the messages, the title and the archiving of one chat."""

    def history(
        self, limit: int | None = None, *, before: int | None = None, after: int | None = None
    ) -> list[Message]:
        """Read its messages, word for word, oldest first."""

    def rename(self, title: str) -> None:
        """Set its title."""

    def archive(self, *, archived: bool = True) -> None:
        """Archive it, or bring it back."""


class ReviewedChat(Protocol):
    """review: a chat as text, for a reviewer."""

    def review(self, since: datetime | None = None, *, limit: int = 200) -> str:
        """Write what was said since a time, after summaries of what was before; "" if nothing was said."""


class LearningFacet(Protocol):
    """The background work of a provider."""

    def work(self, *, limit: int | None = None) -> object:
        """Run the jobs that are due, at most `limit`, and return their results."""


class Learns(Protocol):
    """learn: records are made from chats, in the background."""

    @property
    def learning(self) -> LearningFacet:
        """The background work."""


class EndedChat(Protocol):
    """learn: a chat that can be marked as ended."""

    def end(self) -> object:
        """Mark the chat as ended, and queue the jobs that learn from it."""


class Scratchpads(Protocol):
    """scratchpad: stored texts, by name."""

    @property
    def scratchpad(self) -> MutableMapping[str, str]:
        """The scratchpad of the user."""


# What a provider can do -----------------------------------------------------------------------------------


class Methods(NamedTuple):
    """The methods that make up a capability: of a provider, and of its chats."""

    provider: tuple[str, ...]
    chat: tuple[str, ...]


def _names(*protocols: type) -> tuple[str, ...]:
    return tuple(name for protocol in protocols for name in vars(protocol) if not name.startswith("_"))


METHODS: dict[Capability, Methods] = {
    "scopes": Methods(_names(Scopes), ()),
    "prompt": Methods((), _names(PromptedChat)),
    "compact": Methods((), _names(CompactedChat)),
    "search": Methods((), _names(SearchedChat)),
    "recall": Methods(_names(Recall), ()),
    "explore": Methods((), _names(ExploredChat)),
    "records": Methods(_names(Records), ()),
    "profile": Methods(_names(Profile), ()),
    "versions": Methods(_names(Versions), ()),
    "snapshots": Methods((), _names(SnapshotChat)),
    "changes": Methods(_names(Changes), ()),
    "sessions": Methods(_names(Sessions), _names(KeptChat)),
    "timeline": Methods(_names(Timelines), ()),
    "review": Methods((), _names(ReviewedChat)),
    "learn": Methods(_names(Learns), _names(EndedChat)),
    "scratchpad": Methods(_names(Scratchpads), ()),
}
"""Each capability with its methods, which are those of the protocols above."""


def capabilities(provider: Provider) -> frozenset[Capability]:
    """Return what a provider can do beside the core, by the methods that it and its chats really have.

    It looks at a chat that it opens, which stores nothing. A method that is None is not there, so that a
    class can take back what it inherits.

    >>> from holdfast import Memory
    >>> sorted(set(CAPABILITIES) - capabilities(Memory(":memory:")))
    []

    Raises:
        InvalidInput: it is no provider.

    """
    check_provider(provider)
    chat = provider.chat("capabilities")
    return frozenset(
        name
        for name, methods in METHODS.items()
        if _has(provider, methods.provider) and _has(chat, methods.chat)
    )


def check_provider(value: object) -> None:
    """Check that something opens chats, which a path or a chat does not.

    Raises:
        InvalidInput: it does not.

    """
    if isinstance(value, type) or not callable(getattr(value, "chat", None)):
        raise InvalidInput(
            f"This is no memory but of the type {type(value).__name__!r}.",
            "Pass a Memory, or another provider of `holdfast.contract`.",
        )


def _has(thing: object, names: Sequence[str]) -> bool:
    return all(getattr(thing, name, None) is not None for name in names)
