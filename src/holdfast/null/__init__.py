"""A memory that does nothing, for code that is to run without one.

`NullMemory` stands wherever a `Memory` does: it opens nothing, stores nothing and asks no model. It answers as an empty
memory would, with lists that have nothing in them, windows without messages, and accounts of no work.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, Self, TypeVar, cast

from holdfast.acting import current
from holdfast.chat import Chat
from holdfast.context.prompt import build
from holdfast.context.window import LastN, Lossless, at_budget, own_budget
from holdfast.errors import InvalidInput
from holdfast.incoming import ready
from holdfast.kinds import FIL
from holdfast.memory import Memory
from holdfast.null.awaited import Awaited
from holdfast.pad import Pad
from holdfast.run import Run
from holdfast.text.tokens import message_tokens
from holdfast.types import (
    AnyMessage,
    ChatStats,
    CompactionResult,
    Erasure,
    Job,
    Message,
    Prompt,
    Record,
    Scope,
    Verification,
    Window,
    Writer,
)
from holdfast.view import At, View

if TYPE_CHECKING:
    from holdfast.aio import AsyncMemory
    from holdfast.context.window import Policy
    from holdfast.learn.ranking import Ranking, Strategy
    from holdfast.learn.results import Extraction, Relearning, Spend, WorkResult

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")
WHY = "This memory keeps nothing."
_FIELDS = ("target", "category", "meta", "priority", "source", "since", "until", "chat")


def _gives(method: Callable[Concatenate[T, P], R], make: Callable[[], R]) -> Callable[Concatenate[T, P], R]:
    """Make a method with the parameters of another one, that does nothing but give what `make` makes."""
    return _makes(method, lambda *_, **__: make())


def _makes(method: Callable[Concatenate[T, P], R], make: Callable[..., R]) -> Callable[Concatenate[T, P], R]:
    """Make a method with the parameters of another one, that gives what `make` makes of the handle and of them."""

    @wraps(method)
    def call(self: T, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return make(self, *args, **kwargs)

    return call


def _none() -> None: ...


def _work() -> WorkResult:
    from holdfast.learn.results import WorkResult  # noqa: PLC0415 - not needed to import all the rest

    return WorkResult(why=WHY)


def _extraction() -> Extraction:
    from holdfast.learn.results import Extraction  # noqa: PLC0415 - as above

    return Extraction(why=WHY)


def _spend() -> Spend:
    from holdfast.learn.results import Spend  # noqa: PLC0415 - as above

    return Spend(None)


def _compaction() -> CompactionResult:
    return CompactionResult((), 0, 0, 0, 0, 0, 0, 0.0, WHY)


def _record(
    memory: View,
    what: str,
    kind: str,
    text: str,
    *,
    by: Writer | None = None,
    tags: Iterable[str] = (),
    messages: int | tuple[int, int] | None = None,
    **given: Any,
) -> Record:
    """Make the record that something would have become; its version is 0, as of one that is not stored."""
    now = datetime.now(UTC)
    return Record(
        what,
        kind,
        text,
        by=by or current().source or "agent",
        agent=memory.scope.agent,
        at=now,
        created=now,
        tags=tuple(tags),
        messages=(messages, messages) if isinstance(messages, int) else messages,
        **{name: given[name] for name in _FIELDS if given.get(name) is not None},
    )


def _remembered(memory: View, text: str, kind: str = "fact", **given: Any) -> Record:
    return _record(memory, "", kind, text, **given)


def _all_remembered(
    memory: View,
    findings: Sequence[str] = (),
    insights: Sequence[str] = (),
    lessons: Sequence[str] = (),
    source: str = "",
    **given: Any,
) -> list[Record]:
    named = zip(FIL, (findings, insights, lessons), strict=True)
    return [
        _record(memory, "", kind, text, source=source, **given) for kind, texts in named for text in texts
    ]


def _replaced(memory: View, what: str, text: str, *, kind: str | None = None, **given: Any) -> Record:
    return replace(_record(memory, what, kind or "fact", text, **given), action="replace")


def _retracted(memory: View, what: str, *, kind: str | None = None, **given: Any) -> Record:
    return replace(_record(memory, what, kind or "fact", "", **given), retracted=True, action="retract")


def _released(memory: View, id: str, *, by: Writer | None = None) -> Record:  # noqa: A002 - as in Memory
    return replace(_record(memory, id, "fact", "", by=by or "user"), trust="released", action="release")


def _discarded(memory: View, id: str, *, by: Writer | None = None) -> Record:  # noqa: A002 - as in Memory
    return _retracted(memory, id, by=by or "user")


def _erased(memory: View, *, by: Writer | None = None, **_: object) -> Erasure:  # noqa: ARG001 - as all of these
    return Erasure("", "", {}, by or current().source or "user", datetime.now(UTC), "")


def _noted(run: Run, make: Callable[..., Record], *args: str, **given: object) -> Record:
    made = make(run._memory, *args, kind="note", target="run", chat=run.chat.id, **given)  # noqa: SLF001 - a part of it
    return replace(made, run=run.id)


def _windowed(
    chat: Chat,  # noqa: ARG001 - as above
    budget: int | None = None,
    *,
    tail: int | None = None,  # noqa: ARG001 - as above
    policy: Policy | None = None,
) -> Window:
    policy = policy or at_budget(Lossless(), budget)
    return Window((), (), 0, None if isinstance(policy, LastN) else policy.budget, ())


def _prompted(
    chat: Chat,
    budget: int | None = None,
    query: str | None = None,  # noqa: ARG001 - as above
    *,
    system: str = "",
    policy: Policy | None = None,
    **_: object,
) -> Prompt:
    select = partial(_windowed, chat, policy=policy)
    budget = own_budget(policy or Lossless()) if budget is None else budget
    return build(select, (), chat=chat.id, budget=budget, system=system)


def _unknown(*_: object, **__: object) -> NoReturn:
    raise InvalidInput("There is no such summary: this memory keeps none.", "Open a `Memory`, which does.")


def _nothing_to_copy(*_: object, **__: object) -> NoReturn:
    raise InvalidInput("There is nothing to copy: this memory keeps nothing.", "Open a `Memory`, which does.")


def _relearned(memory: View, kind: str = "observations", **_: object) -> Relearning:  # noqa: ARG001 - as above
    from holdfast.learn.results import Relearning  # noqa: PLC0415 - as above

    return Relearning(kind, "")


def _ranked(memory: View, query: str | None = None, *, strategy: Strategy = "index", **_: object) -> Ranking:  # noqa: ARG001 - as above
    from holdfast.learn.ranking import Ranking  # noqa: PLC0415 - as above

    return Ranking((), strategy, WHY)


def _retried(memory: View, id: str) -> Job:  # noqa: A002, ARG001 - as above
    return Job(id, "", (), datetime.now(UTC))


class NullPad(Pad):
    """Keep no texts. Made by `pad` of a null memory, chat or run."""

    def __init__(self) -> None:
        pass

    def __getitem__(self, name: str) -> str:
        raise KeyError(name)

    def __setitem__(self, name: str, value: str) -> None:
        pass

    def __delitem__(self, name: str) -> None:
        raise KeyError(name)

    def clear(self) -> None:
        """Do nothing."""

    def stored(self) -> dict[str, str]:
        """Give nothing."""
        return {}

    def _temporary(self) -> dict[str, str]:
        return {}


class NullView(View):
    """Know nothing, now or earlier. Made by `NullMemory.at`."""

    def __init__(self, scope: Scope) -> None:
        self._bound = scope
        self._at = At()

    version = _gives(View.version, int)
    get = _gives(View.get, _none)
    _one = _gives(View._one, _none)  # noqa: SLF001 - as above
    records = _gives(View.records, list)
    recall = _gives(View.recall, list)
    recall_fil = _gives(View.recall_fil, lambda: {kind: [] for kind in FIL})
    changes = _gives(View.changes, list)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.scope})"


class NullRun(Run):
    """Note nothing for a run. Made by `NullChat.run`."""

    def __init__(self, chat: NullChat, id: str | None) -> None:  # noqa: A002 - as in Run
        self._chat = chat
        self._memory = chat._memory  # noqa: SLF001 - as in Run
        self._id = os.urandom(8).hex() if id is None else id

    @property
    def pad(self) -> Pad:
        """The scratchpad of this run, which keeps nothing."""
        return NullPad()

    notes = _gives(Run.notes, list)
    remember = _makes(Run.remember, lambda run, text, **given: _noted(run, _remembered, text, **given))
    replace = _makes(
        Run.replace, lambda run, what, text, **given: _noted(run, _replaced, what, text, **given)
    )
    retract = _makes(Run.retract, lambda run, what, **given: _noted(run, _retracted, what, **given))
    prompt = _makes(Run.prompt, lambda run, *args, **given: run.chat.prompt(*args, **given))
    end = _gives(Run.end, _none)


class NullChat(Chat):
    """Keep nothing of a session. Made by `NullMemory.chat`."""

    def _store(self, messages: Sequence[AnyMessage]) -> list[Message]:
        """Check messages and number them, as the first of a chat, without storing them."""
        now = datetime.now(UTC)
        return [
            replace(
                message,
                seq=number,
                id=message.id or os.urandom(8).hex(),
                at=message.at or now,
                tokens=message_tokens(message),
            )
            for number, message in enumerate(map(ready, messages), 1)
        ]

    history = _gives(Chat.history, list)
    stats = _gives(Chat.stats, ChatStats)
    info = _gives(Chat.info, _none)
    snapshot = _gives(Chat.snapshot, _none)
    receipts = _gives(Chat.receipts, list)
    advance = _gives(Chat.advance, int)
    crowded = _gives(Chat.crowded, bool)
    compact = _gives(Chat.compact, _compaction)
    tree = _gives(Chat.tree, list)
    search = _gives(Chat.search, list)
    review = _gives(Chat.review, str)
    notes = _gives(Chat.notes, list)
    end = _gives(Chat.end, list)
    extract = _gives(Chat.extract, _extraction)
    rename = _gives(Chat.rename, _none)
    label = _gives(Chat.label, _none)
    archive = _gives(Chat.archive, _none)

    window = _makes(Chat.window, _windowed)
    prompt = _makes(Chat.prompt, _prompted)
    describe = _makes(Chat.describe, _unknown)
    expand = _makes(Chat.expand, _unknown)

    @property
    def pad(self) -> Pad:
        """The scratchpad of this chat, which keeps nothing."""
        return NullPad()

    def run(self, id: str | None = None) -> Run:  # noqa: A002 - as in Chat
        """Begin a run that notes nothing."""
        return NullRun(self, id)


class NullMemory(NullView, Memory):
    """Remember nothing, find nothing, and cost nothing: what to pass where a memory is expected and none is wanted.

    It has the methods of `Memory` and of what that makes, with their parameters. What they are given is hardly looked
    at; only messages are checked, and given back numbered as the first of a chat. A pad forgets what is put on it.

    >>> memory = NullMemory(user="ada")
    >>> memory.remember("Training for the Berlin marathon").version
    0
    >>> memory.recall("Which race?")
    []

    Args:
        location: is not opened; nor is anything else looked at that `Memory` takes.
        tenant, user, agent: whose memory it would be.

    Raises:
        InvalidInput: a name is not usable.

    """

    _admin = True  # there is nobody's memory to guard

    def __init__(
        self,
        location: str | os.PathLike[str] = "",  # noqa: ARG002 - as in Memory
        *,
        tenant: str = "",
        user: str = "",
        agent: str = "",
        **_: object,
    ) -> None:
        NullView.__init__(self, Scope(tenant, user, agent))
        self._pinned = False

    @property
    def name(self) -> str:
        """What this kind of memory is called among the providers of the contract."""
        return "null"

    def _holds(self, chat: Chat) -> bool:
        return isinstance(chat, NullChat) and chat._memory.scope.space == self.scope.space  # noqa: SLF001 - as in Memory

    def _handle(self, scope: Scope, *, pinned: bool) -> Self:
        handle = copy(self)
        handle._bound, handle._pinned = scope, pinned  # noqa: SLF001 - our own
        return handle

    def chat(
        self,
        id: str | None = None,  # noqa: A002 - as in Memory
        *,
        channel: str | None = None,  # noqa: ARG002 - as in Memory
        meta: Mapping[str, object] | None = None,  # noqa: ARG002 - as in Memory
    ) -> Chat:
        """Open a session of which nothing is kept."""
        return NullChat(self._handle(self.scope, pinned=True), self._chat_id(id))

    @property
    def pad(self) -> Pad:
        """The scratchpad of the user, which keeps nothing."""
        return NullPad()

    @property
    def aio(self) -> AsyncMemory:
        """The same methods, awaited; they are done at once."""
        return cast("AsyncMemory", Awaited(self))

    at = _makes(Memory.at, lambda memory, _: NullView(memory.scope))
    remember = _makes(Memory.remember, _remembered)
    remember_fil = _makes(Memory.remember_fil, _all_remembered)
    replace = _makes(Memory.replace, _replaced)
    retract = _makes(Memory.retract, _retracted)
    clear = _gives(Memory.clear, list)
    rollback = _gives(Memory.rollback, list)
    undo = _gives(Memory.undo, list)
    quarantine = _gives(Memory.quarantine, list)
    release = _makes(Memory.release, _released)
    discard = _makes(Memory.discard, _discarded)
    erase = _makes(Memory.erase, _erased)
    erasures = _gives(Memory.erasures, list)
    work = _gives(Memory.work, _work)
    extract = _gives(Memory.extract, _extraction)
    reflect = _gives(Memory.reflect, _work)
    consolidate = _gives(Memory.consolidate, _work)
    relearn = _makes(Memory.relearn, _relearned)
    episodes = _makes(Memory.episodes, _ranked)
    jobs = _gives(Memory.jobs, list)
    retry = _makes(Memory.retry, _retried)
    spend = _gives(Memory.spend, _spend)
    on = _gives(Memory.on, lambda: _none)
    chats = _gives(Memory.chats, list)
    users = _gives(Memory.users, list)
    rebuild = _gives(Memory.rebuild, int)
    verify = _gives(Memory.verify, lambda: Verification({}))
    backup = _makes(Memory.backup, _nothing_to_copy)
    close = _gives(Memory.close, _none)
