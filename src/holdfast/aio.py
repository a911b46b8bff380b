"""The same names, awaited: each call runs the synchronous method on a bounded pool of threads.

There is one implementation. A call that was cancelled before it began does nothing; one that had begun
finishes, so a message whose `append` was cancelled is stored whole or not at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Self

from holdfast.awaiting import Awaited, all_answers, asking, awaited, made, metered, run_on
from holdfast.chat import Chat
from holdfast.compaction.compactor import ChatCompactor, CompactOptions, resolved, summary_question
from holdfast.errors import Closed
from holdfast.handle import MemoryHandle
from holdfast.learning.service import Learner
from holdfast.records.grants import Grants
from holdfast.records.quarantine import Quarantine
from holdfast.records.view import View
from holdfast.run import Run
from holdfast.scratchpad import Scratchpad
from holdfast.types import CompactionResult, Grant, Record, Time
from holdfast.types.current_run import leave

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from holdfast.compaction.compactor import Progress
    from holdfast.compaction.driver import TimeLimit
    from holdfast.events import Event
    from holdfast.llm.model import LLM
    from holdfast.prompt.window import Lossless, SummaryBuffer
    from holdfast.runtime import Runtime
    from holdfast.tools.tool import Style, Tool, ToolResult
    from holdfast.types import Scope

# Summaries that an asynchronous model writes at the same time.
AT_ONCE = 4


class AsyncScratchpad(Awaited[Scratchpad]):
    """A scratchpad whose methods are awaited. Made by `scratchpad` of an awaited memory, chat or run."""

    get = awaited(Scratchpad.get)
    set = awaited(Scratchpad.__setitem__)
    delete = awaited(Scratchpad.__delitem__)
    clear = awaited(Scratchpad.clear)
    list = awaited(Scratchpad.list)
    search = awaited(Scratchpad.search)
    stored = awaited(Scratchpad.stored)


class AsyncRun(Awaited[Run[Chat]]):
    """A run whose methods are awaited. Made by `AsyncChat.run`, for `async with chat.run() as run`."""

    def __init__(
        self, chat: AsyncChat, begin: Callable[[], Run[Chat]], executor: Callable[[], Executor]
    ) -> None:
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

    remember = awaited(Run.remember)
    notes = awaited(Run.notes)
    replace = awaited(Run.replace)
    retract = awaited(Run.retract)
    prompt = awaited(Run.prompt)
    end = awaited(Run.end)

    async def __aenter__(self) -> Self:
        self.__wrapped__ = await run_on(self._executor, self._begin)
        self.__wrapped__.__enter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        leave(self.__wrapped__)
        # Also when the task is cancelled.
        await asyncio.shield(self.end())


class AsyncChat(Awaited[Chat]):
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

    append = awaited(Chat.append)
    history = awaited(Chat.history)
    stats = awaited(Chat.stats)
    rename = awaited(Chat.rename)
    archive = awaited(Chat.archive)
    rewind = awaited(Chat.rewind)
    edit = awaited(Chat.edit)
    regenerate = awaited(Chat.regenerate)
    branches = awaited(Chat.branches)
    switch = awaited(Chat.switch)
    window = awaited(Chat.window)
    prompt = awaited(Chat.prompt)
    remember = awaited(Chat.remember)
    notes = awaited(Chat.notes)
    refresh = awaited(Chat.refresh)
    needs_compaction = awaited(Chat.needs_compaction)
    describe = awaited(Chat.describe)
    expand = awaited(Chat.expand)
    tree = awaited(Chat.tree)
    search = awaited(Chat.search)
    review = awaited(Chat.review)

    async def compact(
        self,
        *,
        full: bool = False,
        budget: int | None = None,
        llm: LLM | None = None,
        progress: Progress | None = None,
        policy: Lossless | SummaryBuffer | None = None,
        prompts: Mapping[str, str] | None = None,
    ) -> CompactionResult:
        """As `Chat.compact`, awaited; an asynchronous model writes several summaries at once."""
        on_thread = partial(run_on, self._executor)
        model = await on_thread(partial(resolved, llm))
        if model is None or self._compactor is None:
            plain = partial(self.__wrapped__.compact, full=full, budget=budget, progress=progress)
            return await on_thread(partial(plain, policy=policy, prompts=prompts))
        compactor = self._compactor()

        async def ask(prompts: list[str], limit: TimeLimit) -> list[str]:
            meter = compactor.meter()

            async def answer(prompt: str) -> str:
                return await metered(meter, model, summary_question(prompt), limit.wait(), self.id, on_thread)

            return await all_answers([answer(prompt) for prompt in prompts])

        options = CompactOptions(full, budget, progress, policy, prompts)
        return await compactor.run(model, options, ask, on_thread, AT_ONCE if model.is_async else 1)

    compact.__doc__ = Chat.compact.__doc__
    extract = asking(Chat.extract)
    end = awaited(Chat.end)

    snapshot = awaited(Chat.snapshot)
    receipts = awaited(Chat.receipts)

    @property
    def scratchpad(self) -> AsyncScratchpad:
        """The scratchpad of this chat."""
        return AsyncScratchpad(self.__wrapped__.scratchpad, self._executor)

    def run(self, id: str | None = None, *, shared: bool = False) -> AsyncRun:
        """Begin a run when the block is entered, as `Chat.run` does."""
        return AsyncRun(self, partial(self.__wrapped__.run, id, shared=shared), self._executor)


class AsyncView(Awaited[View]):
    """A view of an earlier version whose methods are awaited. Made by `AsyncMemory.at`."""

    @property
    def scope(self) -> Scope:
        """Whose memory this handle is."""
        return self.__wrapped__.scope

    version = awaited(View.version)
    get = awaited(View.get)
    records = awaited(View.records)
    recall = awaited(View.recall)
    explain = awaited(View.explain)
    changes = awaited(View.changes)
    conflicts = awaited(View.conflicts)


class AsyncTool:
    """A tool that is awaited. Made by `AsyncMemory.tools`.

    `name` is what the model calls it by, `description` what the model is told of it, and `parameters` the
    JSON schema of its arguments. `read_only`, `destructive` and `idempotent` describe the effects of a call,
    as those of a `Tool`.
    """

    def __init__(self, tool: Tool, executor: Callable[[], Executor]) -> None:
        self.__wrapped__ = tool
        self._executor = executor
        self.name, self.description, self.parameters = tool.name, tool.description, tool.parameters
        self.read_only, self.destructive = tool.read_only, tool.destructive
        self.idempotent = tool.idempotent

    async def __call__(self, arguments: Mapping[str, object] | str | None = None, /) -> ToolResult:
        """Call it with arguments as a mapping or as JSON. Never raises."""
        try:
            return await run_on(self._executor, partial(self.__wrapped__, arguments))
        except Closed as error:
            # Only for those who use tools.
            from holdfast.tools.tool import failure

            return failure(error)


class AsyncLearner(Awaited[Learner]):
    """Learning whose methods are awaited. `AsyncMemory.learning`."""

    work = asking(Learner.work)
    feedback = awaited(Learner.feedback)
    extract = asking(Learner.extract)
    reflect = asking(Learner.reflect)
    consolidate = asking(Learner.consolidate)
    relearn = asking(Learner.relearn)
    expire = awaited(Learner.expire)
    episodes = asking(Learner.episodes)
    jobs = awaited(Learner.jobs)
    retry_job = awaited(Learner.retry_job)
    embedding = awaited(Learner.embedding)
    usage = awaited(Learner.usage)


class AsyncQuarantine(Awaited[Quarantine]):
    """A quarantine whose methods are awaited, for `async for`. `AsyncMemory.quarantine`."""

    async def __aiter__(self) -> AsyncIterator[Record]:
        for record in await run_on(self._executor, partial(list[Record], self.__wrapped__)):
            yield record

    release = awaited(Quarantine.release)
    release_all = awaited(Quarantine.release_all)
    discard = awaited(Quarantine.discard)


class AsyncGrants(Awaited[Grants]):
    """Grants whose methods are awaited, for `async for`. `AsyncMemory.grants`."""

    async def __aiter__(self) -> AsyncIterator[Grant]:
        for grant in await run_on(self._executor, partial(list[Grant], self.__wrapped__)):
            yield grant

    add = awaited(Grants.add)
    revoke = awaited(Grants.revoke)
    move = awaited(Grants.move)
    copy = awaited(Grants.copy)
    projects = awaited(Grants.projects)
    users = awaited(Grants.users)


class AsyncMemory(Awaited[MemoryHandle]):
    """A memory whose methods are awaited. Made by `Memory.aio`; shares its connections.

    `runtime` is None for a memory that keeps nothing.
    """

    def __init__(
        self, sync: MemoryHandle, executor: Callable[[], Executor], runtime: Runtime | None = None
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

    def _other(self, sync: MemoryHandle) -> AsyncMemory:
        return AsyncMemory(sync, self._executor, self._runtime)

    def _chat(self, sync: Chat) -> AsyncChat:
        compactor = None if self._runtime is None else partial(self._runtime.compactor, self.scope, sync.id)
        return AsyncChat(sync, self._executor, compactor)

    scoped = made(MemoryHandle.scoped, _other)
    chat = made(MemoryHandle.chat, _chat)

    @property
    def scratchpad(self) -> AsyncScratchpad:
        """The scratchpad of the user."""
        return AsyncScratchpad(self.__wrapped__.scratchpad, self._executor)

    @property
    def learning(self) -> AsyncLearner:
        """Learning from history, awaited."""
        return AsyncLearner(self.__wrapped__.learning, self._executor)

    @property
    def quarantine(self) -> AsyncQuarantine:
        """What is in quarantine, to be iterated over with `async for`, with `release` and `discard`."""
        return AsyncQuarantine(self.__wrapped__.quarantine, self._executor)

    @property
    def grants(self) -> AsyncGrants:
        """Rights of users on spaces of others, to be iterated over with `async for`."""
        return AsyncGrants(self.__wrapped__.grants, self._executor)

    def on(self, event: str, observer: Callable[[Event], object]) -> Callable[[], None]:
        """Call a function at each event of a name, as `Memory.on` does: on a thread, not on the loop."""
        return self.__wrapped__.on(event, observer)

    def tools(
        self,
        chat: AsyncChat | str | None = None,
        *,
        style: Style = "many",
        allow: str | Iterable[str] | None = None,
        read_only: bool | str | Iterable[str] = False,
        confirm: Callable[[str], bool] | None = None,
        max_tokens: int = 2_000,
    ) -> list[AsyncTool]:
        """Make tools for an agent, as `Memory.tools` does; `confirm` runs on a thread, not on the loop."""
        make = partial(self.__wrapped__.tools, chat.__wrapped__ if isinstance(chat, AsyncChat) else chat)
        tools = make(style=style, allow=allow, read_only=read_only, confirm=confirm, max_tokens=max_tokens)
        return [AsyncTool(tool, self._executor) for tool in tools]

    version = awaited(MemoryHandle.version)
    get = awaited(MemoryHandle.get)
    records = awaited(MemoryHandle.records)
    recall = awaited(MemoryHandle.recall)
    explain = awaited(MemoryHandle.explain)
    changes = awaited(MemoryHandle.changes)
    remember = awaited(MemoryHandle.remember)
    replace = awaited(MemoryHandle.replace)
    retract = awaited(MemoryHandle.retract)
    retract_all = awaited(MemoryHandle.retract_all)
    pin = awaited(MemoryHandle.pin)
    unpin = awaited(MemoryHandle.unpin)
    conflicts = awaited(MemoryHandle.conflicts)
    resolve = awaited(MemoryHandle.resolve)
    rollback = awaited(MemoryHandle.rollback)
    undo = awaited(MemoryHandle.undo)
    erase = awaited(MemoryHandle.erase)
    chats = awaited(MemoryHandle.chats)
    timeline = awaited(MemoryHandle.timeline)
    verify = awaited(MemoryHandle.verify)
    backup = awaited(MemoryHandle.backup)

    async def at(self, version: int | Time) -> AsyncView:
        """As `Memory.at`, awaited."""
        return AsyncView(await run_on(self._executor, partial(self.__wrapped__.at, version)), self._executor)

    at.__doc__ = MemoryHandle.at.__doc__

    async def close(self) -> None:
        """Wait for the calls that have begun, then close the memory."""
        # Not on the memory's own threads: it waits for them.
        await asyncio.to_thread(self.__wrapped__.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
