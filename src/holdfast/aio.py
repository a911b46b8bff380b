"""The same names, awaited: each call runs the synchronous method on a bounded pool of threads.

There is one implementation. A call that was cancelled before it began does nothing; one that had begun finishes, so a
message whose `append` was cancelled is stored whole or not at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextvars import copy_context
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, cast

from holdfast.chat import Chat
from holdfast.compaction.explorer import asking, resolved
from holdfast.errors import Closed, ModelFailed
from holdfast.memory import Memory
from holdfast.records.view import View
from holdfast.run import Run
from holdfast.scratchpad import Pad
from holdfast.types import CompactionResult, Time
from holdfast.types.current_run import enter, leave

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from holdfast.compaction.driver import Steps
    from holdfast.compaction.tree import Mode
    from holdfast.events import Event
    from holdfast.llm.llm_request import LLMRequest
    from holdfast.llm.meter import Meter
    from holdfast.llm.model import LLM, Model
    from holdfast.prompt.window import Lossless, SummaryBuffer
    from holdfast.tools.tool import Style, Tool, ToolResult
    from holdfast.types import Scope

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")
AT_ONCE = 4  # summaries that a model writes at the same time
P = ParamSpec("P")


class _Async(Generic[T_co]):
    def __init__(self, sync: T_co, executor: Callable[[], Executor]) -> None:
        self._sync = sync
        self._executor = executor

    def __repr__(self) -> str:
        return f"{self._sync!r}.aio"


def _awaited(
    method: Callable[Concatenate[T, P], R],
) -> Callable[Concatenate[_Async[T], P], Coroutine[Any, Any, R]]:
    """Make the awaited form of a method, with the same parameters."""

    @wraps(method)
    async def call(self: _Async[T], /, *args: P.args, **kwargs: P.kwargs) -> R:
        own = getattr(self._sync, method.__name__)  # of a class of one's own, its own
        return await _on(self._executor, partial(own, *args, **kwargs))

    return call


async def _on(executor: Callable[[], Executor], work: Callable[[], R]) -> R:
    """Do some work on a thread of the memory, in the context of the caller."""
    try:
        result = asyncio.get_running_loop().run_in_executor(executor(), copy_context().run, work)
    except RuntimeError as error:  # the memory was closed since its pool was asked for
        raise Closed("The memory is closed.", "Open a new Memory.") from error
    return await result


_AskAsync = Callable[[str], Awaitable[str]]


class _OnThread(Protocol):
    def __call__(self, work: Callable[[], R], /) -> Awaitable[R]: ...


async def _drive(steps: Steps, ask: _AskAsync, on_thread: _OnThread) -> CompactionResult:
    """Run a compaction, awaiting the model for all prompts of a batch at once; see `compaction/driver.py`."""
    # As in Chat.compact.
    from holdfast.compaction.driver import advance

    done = await on_thread(partial(advance, steps.__next__))
    while not isinstance(done, CompactionResult):
        try:
            answers = await _all_answers([ask(prompt) for prompt in done])
        except ModelFailed as error:
            done = await on_thread(partial(advance, steps.throw, error))
        else:
            done = await on_thread(partial(advance, steps.send, answers))
    return done


async def _all_answers(asked: Sequence[Awaitable[str]]) -> list[str]:
    """Await all answers, or raise the first error and let the others go."""
    tasks = [asyncio.ensure_future(one) for one in asked]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        # They close their connections.
        await asyncio.gather(*tasks, return_exceptions=True)


async def _metered(
    meter: Meter, model: Model, question: LLMRequest, patience: float, chat: str, on_thread: _OnThread
) -> str:
    """Ask a model and await its answer; `Meter.ask` is its twin."""
    # Only for those who have a model.
    from holdfast.llm.model import acomplete

    begin = partial(meter.begin, model, question.purpose, question.prompt, question.answer_tokens, chat=chat)
    call = await on_thread(begin)
    try:
        answer = await acomplete(model, question.prompt, patience)
    except BaseException as error:
        await asyncio.shield(on_thread(partial(meter.end, call, error)))
        raise
    await on_thread(partial(meter.end, call, answer))
    return answer


def _asking(
    method: Callable[Concatenate[T, P], R],
) -> Callable[Concatenate[_Async[T], P], Coroutine[Any, Any, R]]:
    """Make the awaited form of a method that asks a model: an asynchronous one answers on the loop of the caller."""

    @wraps(method)
    async def call(self: _Async[T], /, *args: P.args, **kwargs: P.kwargs) -> R:
        on_thread = partial(_on, self._executor)
        model = await on_thread(partial(resolved, cast("LLM | None", kwargs.get("llm"))))
        given: dict[str, Any] = dict(kwargs)
        if model is not None:
            # Only for those who have a model.
            from holdfast.llm.model import hosted

            given["llm"] = hosted(model, asyncio.get_running_loop())
        # Not on the memory's own threads: closing it waits for these, and a model may think for minutes.
        return await asyncio.to_thread(partial(getattr(self._sync, method.__name__), *args, **given))

    return call


class AsyncPad(_Async[Pad]):
    """A pad whose methods are awaited. Made by `pad` of an awaited memory, chat or run."""

    get = _awaited(Pad.get)
    set = _awaited(Pad.__setitem__)
    delete = _awaited(Pad.__delitem__)
    clear = _awaited(Pad.clear)
    list = _awaited(Pad.list)
    search = _awaited(Pad.search)
    stored = _awaited(Pad.stored)


class AsyncRun(_Async[Run]):
    """A run whose methods are awaited. Made by `AsyncChat.run`, for `async with chat.run() as run`."""

    def __init__(self, begin: Callable[[], Run], executor: Callable[[], Executor]) -> None:
        self._begin = begin
        self._executor = executor

    @property
    def id(self) -> str:
        """The id of the run."""
        return self._sync.id

    @property
    def chat(self) -> AsyncChat:
        """The session that it is a run of."""
        return AsyncChat(self._sync.chat, self._executor)

    @property
    def pad(self) -> AsyncPad:
        """The scratchpad of this run."""
        return AsyncPad(self._sync.pad, self._executor)

    remember = _awaited(Run.remember)
    notes = _awaited(Run.notes)
    replace = _awaited(Run.replace)
    retract = _awaited(Run.retract)
    prompt = _awaited(Run.prompt)
    end = _awaited(Run.end)

    async def __aenter__(self) -> Self:
        self._sync = await _on(self._executor, self._begin)
        enter(self._sync)
        return self

    async def __aexit__(self, *_: object) -> None:
        leave(self._sync)
        await asyncio.shield(self.end())  # also when the task is cancelled


class AsyncChat(_Async[Chat]):
    """A chat whose methods are awaited. Made by `AsyncMemory.chat`."""

    @property
    def id(self) -> str:
        """The id of the session."""
        return self._sync.id

    append = _awaited(Chat.append)
    history = _awaited(Chat.history)
    stats = _awaited(Chat.stats)
    info = _awaited(Chat.info)
    rename = _awaited(Chat.rename)
    label = _awaited(Chat.label)
    archive = _awaited(Chat.archive)
    window = _awaited(Chat.window)
    prompt = _awaited(Chat.prompt)
    remember = _awaited(Chat.remember)
    notes = _awaited(Chat.notes)
    advance = _awaited(Chat.advance)
    crowded = _awaited(Chat.crowded)
    describe = _awaited(Chat.describe)
    expand = _awaited(Chat.expand)
    tree = _awaited(Chat.tree)
    search = _awaited(Chat.search)
    review = _awaited(Chat.review)

    async def compact(
        self,
        mode: Mode = "incremental",
        *,
        budget: int | None = None,
        llm: LLM | None = None,
        progress: Callable[[CompactionResult], None] | None = None,
        policy: Lossless | SummaryBuffer | None = None,
    ) -> CompactionResult:
        """As `Chat.compact`; an asynchronous model writes several summaries at once."""
        on_thread = partial(_on, self._executor)
        policy = self._sync._compacting(policy, budget)  # noqa: SLF001 - its twin
        model = await on_thread(partial(resolved, llm))
        if model is None:
            return await on_thread(partial(self._sync.compact, mode, progress=progress, policy=policy))
        at_once = AT_ONCE if model.is_async else 1
        # As in Chat.compact.
        from holdfast.compaction.driver import TimeLimit

        limit = TimeLimit(policy.compaction)
        steps = self._sync._steps(mode, model, progress, policy, limit, at_once=at_once)  # noqa: SLF001 - its twin

        async def ask(prompt: str) -> str:
            meter = self._sync._meter()  # noqa: SLF001 - as above
            return await _metered(meter, model, asking(prompt), limit.wait(), self.id, on_thread)

        try:
            done = await _drive(steps, ask, on_thread)
        except ModelFailed as error:
            await on_thread(partial(self._sync._tell, error))  # noqa: SLF001 - as above
            raise
        await on_thread(partial(self._sync._tell, done))  # noqa: SLF001 - as above
        return done

    compact.__doc__ = Chat.compact.__doc__
    extract = _asking(Chat.extract)
    end = _awaited(Chat.end)

    snapshot = _awaited(Chat.snapshot)
    receipts = _awaited(Chat.receipts)

    @property
    def pad(self) -> AsyncPad:
        """The scratchpad of this chat."""
        return AsyncPad(self._sync.pad, self._executor)

    def run(self, id: str | None = None) -> AsyncRun:
        """Begin a run when the block is entered, as `Chat.run` does."""
        return AsyncRun(partial(self._sync.run, id), self._executor)

    def same_as(self, other: AsyncChat) -> bool:
        """Say whether both are handles on the same session."""
        return self._sync.same_as(other._sync)


class AsyncView(_Async[View]):
    """A view of an earlier version whose methods are awaited. Made by `AsyncMemory.at`."""

    @property
    def scope(self) -> Scope:
        """Whose memory this handle is."""
        return self._sync.scope

    version = _awaited(View.version)
    get = _awaited(View.get)
    records = _awaited(View.records)
    recall = _awaited(View.recall)
    recall_fil = _awaited(View.recall_fil)
    changes = _awaited(View.changes)
    profile = _awaited(View.profile)
    soul = _awaited(View.soul)
    constraints = _awaited(View.constraints)


class AsyncTool:
    """A tool that is awaited. Made by `AsyncMemory.tools`."""

    def __init__(self, tool: Tool, executor: Callable[[], Executor]) -> None:
        self._sync = tool
        self._executor = executor

    @property
    def name(self) -> str:
        """What the model calls it by."""
        return self._sync.name

    @property
    def description(self) -> str:
        """What the model is told of it."""
        return self._sync.description

    @property
    def parameters(self) -> Mapping[str, object]:
        """The JSON schema of its arguments."""
        return self._sync.parameters

    @property
    def read_only(self) -> bool:
        """Whether a call changes nothing."""
        return self._sync.read_only

    @property
    def destructive(self) -> bool:
        """Whether a call may change or remove what is there."""
        return self._sync.destructive

    @property
    def idempotent(self) -> bool:
        """Whether a second call with the same arguments changes nothing more."""
        return self._sync.idempotent

    async def __call__(self, arguments: Mapping[str, object] | str | None = None, /) -> ToolResult:
        """Call it with arguments as a mapping or as JSON. Never raises."""
        try:
            return await _on(self._executor, partial(self._sync, arguments))
        except Closed as error:
            # Only for those who use tools.
            from holdfast.tools.tool import failure

            return failure(error)


class AsyncMemory(_Async[Memory]):
    """A memory whose methods are awaited. Made by `Memory.aio`; shares its connections."""

    @property
    def name(self) -> str:
        """What this kind of memory is called among the providers of the contract."""
        return self._sync.name

    @property
    def scope(self) -> Scope:
        """Whose memory this handle is."""
        return self._sync.scope

    def scoped(
        self, *, tenant: str | None = None, user: str | None = None, agent: str | None = None
    ) -> AsyncMemory:
        """Make a handle for another tenant, user or agent, as `Memory.scoped` does."""
        return self._sync.scoped(tenant=tenant, user=user, agent=agent).aio

    @property
    def pad(self) -> AsyncPad:
        """The scratchpad of the user."""
        return AsyncPad(self._sync.pad, self._executor)

    def chat(
        self,
        id: str | None = None,
        *,
        channel: str | None = None,
        meta: Mapping[str, object] | None = None,
    ) -> AsyncChat:
        """Open a session, as `Memory.chat` does."""
        return AsyncChat(self._sync.chat(id, channel=channel, meta=meta), self._executor)

    def on(self, event: str, observer: Callable[[Event], object]) -> Callable[[], None]:
        """Call a function at each event of a name, as `Memory.on` does: on a thread, not on the loop."""
        return self._sync.on(event, observer)

    def tools(
        self,
        chat: AsyncChat | str | None = None,
        *,
        style: Style = "many",
        allow: Iterable[str] | None = None,
        read_only: bool | Iterable[str] = False,
        confirm: Callable[[str], bool] | None = None,
        token_cap: int = 2_000,
    ) -> list[AsyncTool]:
        """Make tools for an agent, as `Memory.tools` does; `confirm` is called on a thread, not on the loop."""
        made = self._sync.tools(
            chat._sync if isinstance(chat, AsyncChat) else chat,  # noqa: SLF001 - its twin
            style=style,
            allow=allow,
            read_only=read_only,
            confirm=confirm,
            token_cap=token_cap,
        )
        return [AsyncTool(tool, self._executor) for tool in made]

    version = _awaited(Memory.version)
    get = _awaited(Memory.get)
    records = _awaited(Memory.records)
    recall = _awaited(Memory.recall)
    recall_fil = _awaited(Memory.recall_fil)
    changes = _awaited(Memory.changes)
    profile = _awaited(Memory.profile)
    set_profile = _awaited(Memory.set_profile)
    soul = _awaited(Memory.soul)
    set_soul = _awaited(Memory.set_soul)
    constraints = _awaited(Memory.constraints)
    add_constraint = _awaited(Memory.add_constraint)
    remove_constraint = _awaited(Memory.remove_constraint)
    remember = _awaited(Memory.remember)
    remember_fil = _awaited(Memory.remember_fil)
    replace = _awaited(Memory.replace)
    retract = _awaited(Memory.retract)
    clear = _awaited(Memory.clear)
    rollback = _awaited(Memory.rollback)
    undo = _awaited(Memory.undo)
    quarantine = _awaited(Memory.quarantine)
    release = _awaited(Memory.release)
    discard = _awaited(Memory.discard)
    work = _asking(Memory.work)
    extract = _asking(Memory.extract)
    reflect = _asking(Memory.reflect)
    consolidate = _asking(Memory.consolidate)
    relearn = _asking(Memory.relearn)
    episodes = _asking(Memory.episodes)
    jobs = _awaited(Memory.jobs)
    retry = _awaited(Memory.retry)
    spend = _awaited(Memory.spend)
    erase = _awaited(Memory.erase)
    erasures = _awaited(Memory.erasures)
    chats = _awaited(Memory.chats)
    users = _awaited(Memory.users)
    rebuild = _awaited(Memory.rebuild)
    verify = _awaited(Memory.verify)
    backup = _awaited(Memory.backup)

    async def at(self, version: int | Time) -> AsyncView:
        """Look at what was known earlier: a view with every read of records and recall, answered as of then.

        Of a version, messages count that were stored when it was written; of a time, those that were said until then.
        Version 0 is empty. What is true in the world is judged as of then as well.

        Raises:
            InvalidInput: there is no such version.

        """
        return AsyncView(await _on(self._executor, partial(self._sync.at, version)), self._executor)

    async def close(self) -> None:
        """Wait for the calls that have begun, then close the memory."""
        await asyncio.to_thread(self._sync.close)  # not on the memory's own threads: it waits for them

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
