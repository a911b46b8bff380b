"""The same names, awaited: each call runs the synchronous method on a bounded pool of threads.

There is one implementation. A call that was cancelled before it began does nothing; one that had begun finishes, so a
message whose `append` was cancelled is stored whole or not at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextvars import copy_context
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, cast

from holdfast.chat import Chat
from holdfast.compaction.compactor import ChatCompactor, resolved, summary_question
from holdfast.errors import Closed
from holdfast.learning.service import Learner
from holdfast.memory import Memory
from holdfast.records.quarantine import Quarantine
from holdfast.records.view import View
from holdfast.run import Run
from holdfast.scratchpad import Scratchpad
from holdfast.types import CompactionResult, Record, Time
from holdfast.types.current_run import enter, leave

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from typing import Unpack

    from holdfast.compaction.compactor import Progress
    from holdfast.compaction.driver import OnThread, TimeLimit
    from holdfast.events import Event
    from holdfast.llm.llm_request import LLMRequest
    from holdfast.llm.meter import Meter
    from holdfast.llm.model import LLM, Model
    from holdfast.prompt.window import Lossless, SummaryBuffer
    from holdfast.runtime import Runtime
    from holdfast.tools.tool import Tool, ToolOptions, ToolResult
    from holdfast.types import Scope

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")
AT_ONCE = 4  # summaries that a model writes at the same time
P = ParamSpec("P")


class _Async(Generic[T_co]):
    """The awaited form of a handle, which is its `__wrapped__`."""

    def __init__(self, sync: T_co, executor: Callable[[], Executor]) -> None:
        self.__wrapped__ = sync
        self._executor = executor

    def __eq__(self, other: object) -> bool:
        return self.__wrapped__ == other.__wrapped__ if isinstance(other, type(self)) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.__wrapped__)

    def __repr__(self) -> str:
        return f"{self.__wrapped__!r}.aio"


def _awaited(
    method: Callable[Concatenate[T, P], R],
) -> Callable[Concatenate[_Async[T], P], Coroutine[Any, Any, R]]:
    """Make the awaited form of a method, with the same parameters."""

    @wraps(method)
    async def call(self: _Async[T], /, *args: P.args, **kwargs: P.kwargs) -> R:
        own = getattr(self.__wrapped__, method.__name__)  # of a class of one's own, its own
        return await _on(self._executor, partial(own, *args, **kwargs))

    return call


async def _on(executor: Callable[[], Executor], work: Callable[[], R]) -> R:
    """Do some work on a thread of the memory, in the context of the caller."""
    try:
        result = asyncio.get_running_loop().run_in_executor(executor(), copy_context().run, work)
    except RuntimeError as error:  # the memory was closed since its pool was asked for
        raise Closed("The memory is closed.", "Open a new Memory.") from error
    return await result


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
    meter: Meter, model: Model, question: LLMRequest, patience: float, chat: str, on_thread: OnThread
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
        return await asyncio.to_thread(partial(getattr(self.__wrapped__, method.__name__), *args, **given))

    return call


class AsyncScratchpad(_Async[Scratchpad]):
    """A scratchpad whose methods are awaited. Made by `scratchpad` of an awaited memory, chat or run."""

    get = _awaited(Scratchpad.get)
    set = _awaited(Scratchpad.__setitem__)
    delete = _awaited(Scratchpad.__delitem__)
    clear = _awaited(Scratchpad.clear)
    list = _awaited(Scratchpad.list)
    search = _awaited(Scratchpad.search)
    stored = _awaited(Scratchpad.stored)


class AsyncRun(_Async[Run]):
    """A run whose methods are awaited. Made by `AsyncChat.run`, for `async with chat.run() as run`."""

    def __init__(self, chat: AsyncChat, begin: Callable[[], Run], executor: Callable[[], Executor]) -> None:
        self._chat = chat
        self._begin = begin
        self._executor = executor

    @property
    def id(self) -> str:
        """The id of the run."""
        return self.__wrapped__.id

    @property
    def chat(self) -> AsyncChat:
        """The chat that it is a run of."""
        return self._chat

    @property
    def scratchpad(self) -> AsyncScratchpad:
        """The scratchpad of this run."""
        return AsyncScratchpad(self.__wrapped__.scratchpad, self._executor)

    remember = _awaited(Run.remember)
    notes = _awaited(Run.notes)
    replace = _awaited(Run.replace)
    retract = _awaited(Run.retract)
    prompt = _awaited(Run.prompt)
    end = _awaited(Run.end)

    async def __aenter__(self) -> Self:
        self.__wrapped__ = await _on(self._executor, self._begin)
        enter(self.__wrapped__)
        return self

    async def __aexit__(self, *_: object) -> None:
        leave(self.__wrapped__)
        await asyncio.shield(self.end())  # also when the task is cancelled


class AsyncChat(_Async[Chat]):
    """A chat whose methods are awaited. Made by `AsyncMemory.chat`.

    `compactor` is None for a chat of a memory that keeps nothing.
    """

    def __init__(
        self,
        sync: Chat,
        executor: Callable[[], Executor],
        compactor: Callable[[], ChatCompactor] | None = None,
    ) -> None:
        super().__init__(sync, executor)
        self._compactor = compactor

    @property
    def id(self) -> str:
        """The id of the chat."""
        return self.__wrapped__.id

    append = _awaited(Chat.append)
    history = _awaited(Chat.history)
    stats = _awaited(Chat.stats)
    rename = _awaited(Chat.rename)
    archive = _awaited(Chat.archive)
    window = _awaited(Chat.window)
    prompt = _awaited(Chat.prompt)
    remember = _awaited(Chat.remember)
    notes = _awaited(Chat.notes)
    refresh = _awaited(Chat.refresh)
    needs_compaction = _awaited(Chat.needs_compaction)
    describe = _awaited(Chat.describe)
    expand = _awaited(Chat.expand)
    tree = _awaited(Chat.tree)
    search = _awaited(Chat.search)
    review = _awaited(Chat.review)

    async def compact(
        self,
        *,
        full: bool = False,
        budget: int | None = None,
        llm: LLM | None = None,
        progress: Progress | None = None,
        policy: Lossless | SummaryBuffer | None = None,
    ) -> CompactionResult:
        """As `Chat.compact`; an asynchronous model writes several summaries at once."""
        on_thread = partial(_on, self._executor)
        model = await on_thread(partial(resolved, llm))
        if model is None or self._compactor is None:
            plain = partial(
                self.__wrapped__.compact, full=full, budget=budget, progress=progress, policy=policy
            )
            return await on_thread(plain)
        compactor = self._compactor()

        async def ask(prompts: list[str], limit: TimeLimit) -> list[str]:
            meter = compactor.meter()

            async def one(prompt: str) -> str:
                return await _metered(
                    meter, model, summary_question(prompt), limit.wait(), self.id, on_thread
                )

            return await _all_answers([one(prompt) for prompt in prompts])

        return await compactor.run(
            model,
            ask,
            on_thread,
            full=full,
            budget=budget,
            progress=progress,
            policy=policy,
            at_once=AT_ONCE if model.is_async else 1,
        )

    compact.__doc__ = Chat.compact.__doc__
    extract = _asking(Chat.extract)
    end = _awaited(Chat.end)

    snapshot = _awaited(Chat.snapshot)
    receipts = _awaited(Chat.receipts)

    @property
    def scratchpad(self) -> AsyncScratchpad:
        """The scratchpad of this chat."""
        return AsyncScratchpad(self.__wrapped__.scratchpad, self._executor)

    def run(self, id: str | None = None) -> AsyncRun:
        """Begin a run when the block is entered, as `Chat.run` does."""
        return AsyncRun(self, partial(self.__wrapped__.run, id), self._executor)


class AsyncView(_Async[View]):
    """A view of an earlier version whose methods are awaited. Made by `AsyncMemory.at`."""

    @property
    def scope(self) -> Scope:
        """Whose memory this handle is."""
        return self.__wrapped__.scope

    version = _awaited(View.version)
    get = _awaited(View.get)
    records = _awaited(View.records)
    recall = _awaited(View.recall)
    changes = _awaited(View.changes)


class AsyncTool:
    """A tool that is awaited. Made by `AsyncMemory.tools`."""

    def __init__(self, tool: Tool, executor: Callable[[], Executor]) -> None:
        self.__wrapped__ = tool
        self._executor = executor

    @property
    def name(self) -> str:
        """What the model calls it by."""
        return self.__wrapped__.name

    @property
    def description(self) -> str:
        """What the model is told of it."""
        return self.__wrapped__.description

    @property
    def parameters(self) -> Mapping[str, object]:
        """The JSON schema of its arguments."""
        return self.__wrapped__.parameters

    @property
    def read_only(self) -> bool:
        """Whether a call changes nothing."""
        return self.__wrapped__.read_only

    @property
    def destructive(self) -> bool:
        """Whether a call may change or remove what is there."""
        return self.__wrapped__.destructive

    @property
    def idempotent(self) -> bool:
        """Whether a second call with the same arguments changes nothing more."""
        return self.__wrapped__.idempotent

    async def __call__(self, arguments: Mapping[str, object] | str | None = None, /) -> ToolResult:
        """Call it with arguments as a mapping or as JSON. Never raises."""
        try:
            return await _on(self._executor, partial(self.__wrapped__, arguments))
        except Closed as error:
            # Only for those who use tools.
            from holdfast.tools.tool import failure

            return failure(error)


class AsyncLearner(_Async[Learner]):
    """Learning whose methods are awaited. `AsyncMemory.learning`."""

    work = _asking(Learner.work)
    extract = _asking(Learner.extract)
    reflect = _asking(Learner.reflect)
    consolidate = _asking(Learner.consolidate)
    relearn = _asking(Learner.relearn)
    episodes = _asking(Learner.episodes)
    jobs = _awaited(Learner.jobs)
    retry_job = _awaited(Learner.retry_job)
    usage = _awaited(Learner.usage)


class AsyncQuarantine(_Async[Quarantine]):
    """A quarantine whose methods are awaited, for `async for`. `AsyncMemory.quarantine`."""

    async def __aiter__(self) -> AsyncIterator[Record]:
        for record in await _on(self._executor, partial(list[Record], self.__wrapped__)):
            yield record

    release = _awaited(Quarantine.release)
    discard = _awaited(Quarantine.discard)


class AsyncMemory(_Async[Memory]):
    """A memory whose methods are awaited. Made by `Memory.aio`; shares its connections.

    `runtime` is None for a memory that keeps nothing.
    """

    def __init__(
        self, sync: Memory, executor: Callable[[], Executor], runtime: Runtime | None = None
    ) -> None:
        super().__init__(sync, executor)
        self._runtime = runtime

    @property
    def name(self) -> str:
        """What this kind of memory is called among the providers of the contract."""
        return self.__wrapped__.name

    @property
    def scope(self) -> Scope:
        """Whose memory this handle is."""
        return self.__wrapped__.scope

    def scoped(
        self, *, tenant: str | None = None, user: str | None = None, agent: str | None = None
    ) -> AsyncMemory:
        """Make a handle for another tenant, user or agent, as `Memory.scoped` does."""
        return self.__wrapped__.scoped(tenant=tenant, user=user, agent=agent).aio

    @property
    def scratchpad(self) -> AsyncScratchpad:
        """The scratchpad of the user."""
        return AsyncScratchpad(self.__wrapped__.scratchpad, self._executor)

    def chat(
        self,
        id: str | None = None,
        *,
        channel: str | None = None,
        meta: Mapping[str, object] | None = None,
    ) -> AsyncChat:
        """Open a chat, as `Memory.chat` does."""
        chat, scope = self.__wrapped__.chat(id, channel=channel, meta=meta), self.scope
        compactor = None if self._runtime is None else partial(self._runtime.compactor, scope, chat.id)
        return AsyncChat(chat, self._executor, compactor)

    @property
    def learning(self) -> AsyncLearner:
        """Learning from history, awaited."""
        return AsyncLearner(self.__wrapped__.learning, self._executor)

    @property
    def quarantine(self) -> AsyncQuarantine:
        """What is in quarantine, to be iterated over with `async for`, with `release` and `discard`."""
        return AsyncQuarantine(self.__wrapped__.quarantine, self._executor)

    def on(self, event: str, observer: Callable[[Event], object]) -> Callable[[], None]:
        """Call a function at each event of a name, as `Memory.on` does: on a thread, not on the loop."""
        return self.__wrapped__.on(event, observer)

    def tools(self, chat: AsyncChat | str | None = None, **options: Unpack[ToolOptions]) -> list[AsyncTool]:
        """Make tools for an agent, as `Memory.tools` does; `confirm` is called on a thread, not on the loop."""
        made = self.__wrapped__.tools(chat.__wrapped__ if isinstance(chat, AsyncChat) else chat, **options)
        return [AsyncTool(tool, self._executor) for tool in made]

    version = _awaited(Memory.version)
    get = _awaited(Memory.get)
    records = _awaited(Memory.records)
    recall = _awaited(Memory.recall)
    changes = _awaited(Memory.changes)
    remember = _awaited(Memory.remember)
    replace = _awaited(Memory.replace)
    retract = _awaited(Memory.retract)
    retract_all = _awaited(Memory.retract_all)
    rollback = _awaited(Memory.rollback)
    undo = _awaited(Memory.undo)
    erase = _awaited(Memory.erase)
    chats = _awaited(Memory.chats)
    users = _awaited(Memory.users)
    verify = _awaited(Memory.verify)
    backup = _awaited(Memory.backup)

    async def at(self, version: int | Time) -> AsyncView:
        """As `Memory.at`, awaited."""
        return AsyncView(await _on(self._executor, partial(self.__wrapped__.at, version)), self._executor)

    at.__doc__ = Memory.at.__doc__

    async def close(self) -> None:
        """Wait for the calls that have begun, then close the memory."""
        await asyncio.to_thread(self.__wrapped__.close)  # not on the memory's own threads: it waits for them

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
