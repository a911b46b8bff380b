"""pydantic-ai: an agent whose model sees a prompt of a chat, whose messages are stored there, and which has our tools.

>>> from pydantic_ai import Agent
>>> agent = Agent("openai:gpt-5-mini", capabilities=[Remembering(chat)], toolsets=[toolset(memory.tools(chat))])
>>> agent.run_sync("Which race am I training for?")

No `message_history` is passed from run to run: the chat has it. One that is passed all the same is stored
once, if its messages keep their times: one that is made anew for each run, as from what a browser sends, is
new to the chat each time.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from itertools import chain, dropwhile
from typing import TYPE_CHECKING, NamedTuple

from holdfast.chat import Chat
from holdfast.errors import Conflict, InvalidInput, MissingExtra
from holdfast.integrations.opaque_items import recalled
from holdfast.llm.adapters import resolve
from holdfast.llm.model import LLM
from holdfast.prompt.window import Lossless, Policy, at_budget, unshortened
from holdfast.runtime import runtime_of
from holdfast.types import check_count

try:
    from pydantic_ai import FunctionToolset, RunContext
    from pydantic_ai import Tool as PydanticTool
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import (
        ModelMessage,
        ModelRequest,
        ModelRequestPart,
        ModelResponse,
        SpeechPart,
        SystemPromptPart,
        ToolCallPart,
        ToolReturnPart,
        UserPromptPart,
    )
    from pydantic_ai.tools import AgentDepsT

    from holdfast.integrations.pydantic_messages import NOTED, answered_call, to_model_messages, user, write
except ImportError as error:
    raise MissingExtra.of("pydantic-ai") from error

if TYPE_CHECKING:
    from pydantic_ai.capabilities import WrapRunHandler
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.run import AgentRunResult

    from holdfast.tools.tool import Tool
    from holdfast.types import Message, Prompt, Window

# What the model sees --------------------------------------------------------------------------------------------------


@dataclass
class Remembering(AbstractCapability[AgentDepsT]):
    """Let an agent remember: its model sees a prompt of the chat, and all that is said is stored there, each once.

    Before each request of the model, what is new is stored, and the model is shown what `Chat.prompt` gives:
    what is known, the summaries, the newest messages that fit, and what is recalled for the newest message of
    the user. Calls are never parted from their results; the newest message of the user is there, however long
    the run, and so is the newest message. The system prompt of the agent stands first and is not stored, nor
    are its instructions.

    What the framework keeps of a run (`result.all_messages()`) is left as it is. A run that fails or is
    cancelled leaves what was said until then. Runs may go on at the same time, in one chat or in many. A
    capability that changes what a model sees of earlier runs stands after this one, which brings them.

    Args:
        chat: the chat, or a function that chooses it for a run by its context.
        budget: tokens at most of what the model sees; instructions and tools are the agent's own, and not
            counted. None for that of the memory's policy.
        recall: whether to recall for the newest message of the user.
        compact: whether to compact the chat after a run that leaves more than fits; a model in place of True
            writes the summaries, as in `Chat.compact`.

    Raises:
        InvalidInput: a negative budget, what is no chat, or what is no model.

    """

    chat: Chat | Callable[[RunContext[AgentDepsT]], Chat]
    budget: int | None = None
    recall: bool = True
    compact: bool | LLM = False
    # Of the run, as it grows; and what is stored of it, by its id.
    _history: list[ModelMessage] = field(default_factory=list, init=False, repr=False)
    _stored: dict[str, Message] = field(default_factory=dict, init=False, repr=False)
    _room: int = field(default=0, init=False, repr=False)  # of the last prompt, for the session
    _expand: bool = field(default=False, init=False, repr=False)  # whether the agent has this tool

    def __post_init__(self) -> None:
        if self.budget is not None:
            check_count(self.budget, "budget")
        if not callable(self.chat) and not callable(getattr(self.chat, "append", None)):
            raise InvalidInput(
                f"{type(self.chat).__name__!r} is no chat.",
                "Pass `memory.chat(id)`, or a function that chooses one.",
            )
        if not isinstance(self.compact, bool):
            resolve(self.compact)

    async def for_run(self, ctx: RunContext[AgentDepsT]) -> Remembering[AgentDepsT]:
        """Choose the chat, and keep apart what belongs to this run."""
        return replace(self, chat=self._chosen(ctx))

    async def before_model_request(
        self, ctx: RunContext[AgentDepsT], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Store what is new, and show the model a prompt of the chat."""
        self._history = ctx.messages
        tools = request_context.model_request_parameters.function_tools
        self._expand = any(tool.name == "expand" for tool in tools)
        given = list(request_context.messages)
        shown = await asyncio.to_thread(self._prompted, self._chosen(ctx), given, ctx.run_id)
        request_context.messages = shown
        return request_context

    async def wrap_run(
        self, ctx: RunContext[AgentDepsT], *, handler: WrapRunHandler
    ) -> AgentRunResult[object]:
        """Store what came after the last request, however the run ends, and compact the chat where that is wanted."""
        if self.compact is not False:
            # A policy that cannot compact is told now, not when the result is there.
            await asyncio.to_thread(self._chosen(ctx).needs_compaction)
        try:
            result = await handler()
        finally:
            await asyncio.to_thread(self._store, self._chosen(ctx))
        if self.compact is not False:
            await asyncio.to_thread(self._compacted, self._chosen(ctx))
        return result

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """Return None: it cannot be written in a specification, since it holds a chat."""
        return None

    def _chosen(self, ctx: RunContext[AgentDepsT]) -> Chat:
        return self.chat(ctx) if callable(self.chat) else self.chat

    def _prompted(self, chat: Chat, given: Sequence[ModelMessage], run: str | None) -> list[ModelMessage]:
        """Store what is new of the history, and make what the model sees in place of what is given."""
        said = self._store(chat)
        own = {one.message.id for one in said if one.place.message >= _begin(self._history, run)}
        begin = _begin(given, run)
        if given != self._history:  # another capability has changed it
            said = list(_said(given))
        users = [one for one in said if one.message.role == "user"]
        asked = [one.message for one in users if one.place.message >= begin]
        query = asked[-1].content if asked and self.recall else None
        task = self._stored.get(users[-1].message.id) if users else None
        system = _system(given)
        words = "\n\n".join(part.content for part in system)
        # What this run has is shown as it is, also before a newer message of the user.
        policy = _unshortened_policy(chat, self.budget) if len(asked) > 1 else None
        prompt, window = self._window(chat, query, words, task, policy, asked=bool(asked))
        left_out = {one.id for one in self._stored.values() if _is_left_out(one, prompt.window)}
        left_out -= {one.id for one in window}
        hidden = {one.place for one in said if one.message.id in left_out}
        known = prompt.system.removeprefix(words).removeprefix("\n\n")
        older = to_model_messages(message for message in window if message.id not in own)
        newest = list(_shown(given, begin, hidden))
        return _assembled(
            [*system, SystemPromptPart(known)] if known else system,
            prompt,
            [*_behind_calls(older, _answered(newest)), *newest],
        )

    def _compacted(self, chat: Chat) -> None:
        if chat.needs_compaction(self._room):
            chat.compact(budget=self._room, llm=None if isinstance(self.compact, bool) else self.compact)

    def _store(self, chat: Chat) -> list[Said]:
        """Store what is new of the history, and give all of it."""
        said = list(_said(self._history))
        new = [one.message for one in said if one.message.id not in self._stored]
        self._stored |= {message.id: message for message in _appended(chat, new)}
        return said

    def _window(
        self,
        chat: Chat,
        query: str | None,
        system: str,
        task: Message | None,
        policy: Policy | None,
        *,
        asked: bool,
    ) -> tuple[Prompt, tuple[Message, ...]]:
        """Return a prompt and the messages it shows: the task is among them, and where there is one, they begin with a user."""
        make = partial(chat.prompt, query=query, system=system, expand=self._expand)
        prompt = make(self.budget, policy=policy)
        self._room = prompt.tokens["room"]
        window = prompt.window.messages
        if not asked and window and window[0].role == "user":
            task = None  # of an earlier run, and the window has a beginning without it
        if task is not None and task.id not in {message.id for message in window}:
            # The newest turn alone is too long: its end is shown, and what the user wants of it.
            prompt = make(max(0, prompt.tokens["budget"] - task.tokens), policy=policy)
            window = prompt.window.messages
        if task is not None or any(message.role == "user" for message in window):
            # The end of what another run was told is no beginning.
            window = tuple(dropwhile(lambda message: message.role != "user", window))
        if task is not None and task.id not in {message.id for message in window}:
            window = (task, *window)
        return prompt, window


def _appended(chat: Chat, messages: Sequence[Message]) -> list[Message]:
    """Store messages. Of one that a run before has stored with another content, the first one stays."""
    try:
        return chat.append(messages)
    except Conflict:
        ids = {message.id for message in messages}
        there = {message.id: message for message in chat.history() if message.id in ids}
        return [*there.values(), *chat.append([one for one in messages if one.id not in there])]


def _is_left_out(message: Message, window: Window) -> bool:
    ranges = [(one.first, one.last) for one in window.omitted]
    ranges += [(one.first, one.last) for one in window.summaries]
    return any(first <= message.seq <= last for first, last in ranges)


def _assembled(
    system: Sequence[SystemPromptPart], prompt: Prompt, messages: Sequence[ModelMessage]
) -> list[ModelMessage]:
    """Put what a prompt has beside messages where it belongs."""
    front = [ModelRequest(parts=list(system))] if system else []
    front += [user(str(one["content"])) for one in prompt.messages[: len(prompt.window.summaries)]]
    found = recalled(prompt)
    if not found:
        return [*front, *messages]
    place = next((n for n in range(len(messages) - 1, -1, -1) if _is_user(messages[n])), 0)
    return [*front, *messages[:place], user(found), *messages[place:]]


def _behind_calls(messages: Iterable[ModelMessage], awaited: set[str]) -> Iterable[ModelMessage]:
    """Put the results of a call right behind it, and calls whose results are awaited last.

    In a chat with several runs at a time they may stand elsewhere.
    """
    blocks: list[list[ModelMessage]] = []
    calls: dict[str, list[ModelMessage]] = {}
    for message in messages:
        block = next((calls[call] for call in _answered([message]) if call in calls), None)
        if block is None:
            blocks.append(block := [])
        block.append(message)
        calls |= dict.fromkeys(_calls(message), block)
    blocks.sort(key=lambda block: not awaited.isdisjoint({*_calls(block[0])} - _answered(block)))
    return chain.from_iterable(blocks)


def _calls(message: ModelMessage) -> list[str]:
    return [part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)]


def _answered(messages: Iterable[ModelMessage]) -> set[str]:
    calls = (answered_call(part) for message in messages for part in message.parts)
    return {call for call in calls if call is not None}


def _shown(given: Sequence[ModelMessage], begin: int, hidden: set[StoredPart]) -> Iterator[ModelMessage]:
    """Leave out what does not fit, and the system prompt, which has a place of its own."""
    system, kept = _first_request(given), _newest(given)
    for number, message in enumerate(given[begin:], begin):
        if isinstance(message, ModelResponse):
            if number >= kept or StoredPart(number) not in hidden:
                yield message
            continue
        parts = [
            part
            for place, part in enumerate(message.parts)
            if (number >= kept or StoredPart(number, place) not in hidden)
            and not (number == system and isinstance(part, SystemPromptPart))
        ]
        if len(parts) == len(message.parts):
            yield message
        elif parts or number == len(given) - 1:
            yield replace(message, parts=parts)


def _is_user(message: ModelMessage) -> bool:
    return isinstance(message, ModelRequest) and any(
        isinstance(part, UserPromptPart | SpeechPart) for part in message.parts
    )


def _first_request(messages: Sequence[ModelMessage]) -> int:
    """Find the request with the system prompt of the agent, if it has one."""
    return next((n for n, message in enumerate(messages) if isinstance(message, ModelRequest)), -1)


def _system(messages: Sequence[ModelMessage]) -> list[SystemPromptPart]:
    first = _first_request(messages)
    return (
        [part for part in messages[first].parts if isinstance(part, SystemPromptPart)] if first >= 0 else []
    )


def _begin(messages: Sequence[ModelMessage], run: str | None) -> int:
    """Find where a run begins, or what it is to answer, if that is older or no message says so."""
    newest = _newest(messages)
    return min(next((n for n, message in enumerate(messages) if message.run_id == run), newest), newest)


def _newest(messages: Sequence[ModelMessage]) -> int:
    """Find what is to be answered, and so is shown whatever it costs: the last message, from the calls on whose results it has."""
    last = len(messages) - 1
    results = _answered(messages[-1:])
    calls = (n for n in range(last, -1, -1) if not results.isdisjoint(_calls(messages[n])))
    return next(calls, last)


# What is stored -------------------------------------------------------------------------------------------------------


class StoredPart(NamedTuple):
    """The index of a message, and of a part of a request."""

    message: int
    part: int = 0


class Said(NamedTuple):
    """One thing that was said: where it stands in the messages of the framework, and what is stored of it."""

    place: StoredPart
    message: Message


def _said(messages: Sequence[ModelMessage]) -> Iterator[Said]:
    """Return what was said, each with an id that is the same whenever the framework passes it again.

    It merges requests, splits them, and fills in what belongs to a run. So each part of a request is a
    message of its own, without what belongs to a run. Parts carry their time: the same words said twice are
    two messages.
    """
    first = _first_request(messages)
    twins: Counter[str] = Counter()
    for number, message in enumerate(messages):
        if isinstance(message, ModelResponse):
            if message.state == "suspended":  # comes again, whole
                continue
            own: list[tuple[int, ModelMessage]] = [
                (0, replace(message, run_id=None, conversation_id=None, metadata=None))
            ]
        else:
            own = [
                (place, ModelRequest(parts=[part]))
                for place, part in enumerate(message.parts)
                if _lasts(part, is_first=number == first)
            ]
        for place, one in own:
            written, lasting = write(one), _without_objects(one)
            known = written.raw if lasting is one else write(lasting).raw
            key = blake2b(json.dumps(known).encode(), digest_size=16).hexdigest()
            twins[key] += 1
            name = key if twins[key] == 1 else f"{key}-{twins[key]}"
            yield Said(StoredPart(number, place), replace(written, id=name))


def _without_objects(message: ModelMessage) -> ModelMessage:
    """Leave out what a tool was given and what it returned: these are objects that may change while the run goes on."""
    if isinstance(message, ModelResponse):
        if not _calls(message):
            return message
        return replace(
            message,
            parts=[
                ToolCallPart(part.tool_name, tool_call_id=part.tool_call_id)
                if isinstance(part, ToolCallPart)
                else part
                for part in message.parts
            ],
        )
    (part,) = message.parts
    if not isinstance(part, ToolReturnPart):
        return message
    same = ToolReturnPart(part.tool_name, "", part.tool_call_id, timestamp=part.timestamp)
    return ModelRequest(parts=[same])


def _lasts(part: ModelRequestPart, *, is_first: bool) -> bool:
    """Return whether a part was said in the conversation, and is not of the agent's own settings."""
    if isinstance(part, SystemPromptPart):
        return not is_first and part.scope == "conversation"
    return part.part_kind not in NOTED


# What the agent can do
# ------------------------------------------------------------------------------------------------


def toolset(tools: Iterable[Tool]) -> FunctionToolset[object]:
    """Make a toolset of tools, those of `Memory.tools` for instance.

    An agent with a chat for each run takes a function instead: `toolsets=[lambda ctx:
    toolset(memory.tools(chat_of(ctx)))]`.
    """
    made = [
        PydanticTool[object].from_schema(
            _called(tool), tool.name, tool.description, json_schema=dict(tool.parameters)
        )
        for tool in tools
    ]
    return FunctionToolset(made, id="holdfast")


def _called(tool: Tool) -> Callable[..., str]:
    def call(**arguments: object) -> str:
        return tool(arguments).text

    return call


def _unshortened_policy(chat: Chat, budget: int | None) -> Policy:
    """Return the policy of a chat's memory at a budget, with every result of a tool as it is."""
    runtime = runtime_of(chat)
    return unshortened(at_budget(runtime.policy if runtime else Lossless(), budget))
