"""pydantic-ai: a capability that stores a run in a chat and prompts the model from it, and a toolset.

>>> from pydantic_ai import Agent
>>> agent = Agent(
...     "openai:gpt-5-mini",
...     capabilities=[Remembering(chat)],
...     toolsets=[toolset(memory.tools(chat))],
... )
>>> agent.run_sync("Which race am I training for?")

Pass no `message_history` from run to run: the chat has it. One that is passed is stored once, provided that
its messages keep their times; messages created for each run, as from a browser, are stored each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, dropwhile
from typing import TYPE_CHECKING

from holdfast import Chat
from holdfast.errors import Conflict, InvalidInput, MissingExtra
from holdfast.integrations.off_loop import off_loop
from holdfast.port import prompts
from holdfast.port.handles import LLM, resolve
from holdfast.types import check_count

try:
    from pydantic_ai import FunctionToolset, RunContext
    from pydantic_ai import Tool as PydanticTool
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import (
        ModelMessage,
        ModelRequest,
        ModelResponse,
        SpeechPart,
        SystemPromptPart,
        ToolReturnPart,
        UserPromptPart,
    )
    from pydantic_ai.tools import AgentDepsT

    from holdfast.integrations.pydantic_messages import (
        PartIndex,
        PlacedMessage,
        answered_calls,
        calls_of,
        first_request,
        placed_messages,
        to_model_messages,
        user,
    )
except ImportError as error:
    raise MissingExtra.of("pydantic-ai") from error

if TYPE_CHECKING:
    from pydantic_ai.capabilities import WrapRunHandler
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.run import AgentRunResult

    from holdfast import Tool
    from holdfast.types import Message, Prompt, Window


@dataclass
class Remembering(AbstractCapability[AgentDepsT]):
    """Store the messages of an agent's runs in a chat, each once, and show its model a prompt of the chat.

    Before each request, new messages are stored, and the model is shown what `Chat.prompt` returns: the
    knowledge block, the summaries, the newest messages that fit, and the hits for the newest message of the
    user. Calls are never separated from their results. The newest message and the newest message of the user
    are always included, however long the run is. The agent's system prompt comes first; neither it nor the
    instructions are stored.

    The framework's own messages (`result.all_messages()`) are not changed. A run that fails or is cancelled
    leaves its messages until then. Runs may be concurrent, in one chat or in several. Place a capability that
    changes messages of earlier runs after this one, which adds them.

    Args:
        chat: the chat, or a function that chooses it for a run by its context.
        budget: maximum tokens of the prompt, without instructions and tools of the agent; None for the budget
            of the memory's policy.
        recall: whether to recall for the newest message of the user.
        compact: whether to compact the chat after a run if it no longer fits; pass a model to write the
            summaries, as in `Chat.compact`.

    Raises:
        InvalidInput: the budget is negative, or `chat` or the model is of the wrong kind.

    """

    chat: Chat | Callable[[RunContext[AgentDepsT]], Chat]
    budget: int | None = None
    recall: bool = True
    compact: bool | LLM = False
    # The framework's messages of the run, a list that grows, and the stored ones by id.
    _history: list[ModelMessage] = field(default_factory=list, init=False, repr=False)
    _stored: dict[str, Message] = field(default_factory=dict, init=False, repr=False)
    # Tokens for messages in the last prompt.
    _room: int = field(default=0, init=False, repr=False)
    # Whether the agent has the tool `expand`.
    _expand: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.budget is not None:
            check_count(self.budget, "budget")
        if not callable(self.chat) and not callable(getattr(self.chat, "append", None)):
            what = f"`chat` is of the type {type(self.chat).__name__!r}."
            raise InvalidInput(what, "Pass `memory.chat(id)`, or a function that chooses one.")
        if not isinstance(self.compact, bool):
            resolve(self.compact)

    async def for_run(self, ctx: RunContext[AgentDepsT]) -> Remembering[AgentDepsT]:
        """Return a copy with the chat of this run and a state of its own."""
        return replace(self, chat=self._chat_of(ctx))

    async def before_model_request(
        self, ctx: RunContext[AgentDepsT], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Store the new messages, and replace those of the request by a prompt of the chat."""
        self._history = ctx.messages
        tools = request_context.model_request_parameters.function_tools
        self._expand = any(tool.name == "expand" for tool in tools)
        given = list(request_context.messages)
        chat = self._chat_of(ctx)
        shown = await off_loop(chat, self._prompt, chat, given, ctx.run_id)
        request_context.messages = shown
        return request_context

    async def wrap_run(
        self, ctx: RunContext[AgentDepsT], *, handler: WrapRunHandler
    ) -> AgentRunResult[object]:
        """Store the messages after the last request, however the run ends, and compact the chat if wanted."""
        chat = self._chat_of(ctx)
        if self.compact is not False:
            # Raises for a policy that cannot compact, before the run rather than after it.
            await off_loop(chat, chat.needs_compaction)
        try:
            result = await handler()
        finally:
            await off_loop(chat, self._store, chat)
        if self.compact is not False:
            await off_loop(chat, self._compact, chat)
        return result

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """Return None: a chat cannot be serialized in a specification of an agent."""
        return None

    def _chat_of(self, ctx: RunContext[AgentDepsT]) -> Chat:
        return self.chat(ctx) if callable(self.chat) else self.chat

    def _prompt(self, chat: Chat, given: Sequence[ModelMessage], run: str | None) -> list[ModelMessage]:
        """Store the new messages, and return those to show the model in place of the given ones."""
        placed = self._store(chat)
        own = {entry.message.id for entry in placed if entry.place.message >= _begin(self._history, run)}
        begin = _begin(given, run)
        if given != self._history:
            # Another capability changed the messages.
            placed = list(placed_messages(given))
        users = [entry for entry in placed if entry.message.role == "user"]
        queries = [entry.message for entry in users if entry.place.message >= begin]
        query = queries[-1].content if queries and self.recall else None
        task = self._stored.get(users[-1].message.id) if users else None
        system = _system(given)
        words = "\n\n".join(part.content for part in system)
        # Results of this run are shown whole, also those before a newer message of the user.
        policy = prompts.unshortened(chat, self.budget) if len(queries) > 1 else None
        make = partial(chat.prompt, query=query, system=words, policy=policy, expand=self._expand)
        prompt, window = self._window(make, task, has_query=bool(queries))
        left_out = {message.id for message in self._stored.values() if _is_left_out(message, prompt.window)}
        left_out -= {message.id for message in window}
        hidden = {entry.place for entry in placed if entry.message.id in left_out}
        known = prompt.system.removeprefix(words).removeprefix("\n\n")
        older = to_model_messages(message for message in window if message.id not in own)
        cut = {message.seq for message in prompt.window.shortened}
        results = [message for message in window if message.role == "tool" and message.seq in cut]
        texts = {result.id: result.content for result in results}
        short = {entry.place: texts[entry.message.id] for entry in placed if entry.message.id in texts}
        newest = list(_visible(_with_results(given, short), begin, hidden))
        return _assemble(
            [*system, SystemPromptPart(known)] if known else system,
            prompt,
            [*_behind_calls(older, answered_calls(newest)), *newest],
        )

    def _compact(self, chat: Chat) -> None:
        if chat.needs_compaction(self._room):
            chat.compact(budget=self._room, llm=None if isinstance(self.compact, bool) else self.compact)

    def _store(self, chat: Chat) -> list[PlacedMessage]:
        """Store the new messages of the history, and return all its messages."""
        placed = list(placed_messages(self._history))
        new = [entry.message for entry in placed if entry.message.id not in self._stored]
        self._stored |= {message.id: message for message in _append(chat, new)}
        return placed

    def _window(
        self, make: Callable[[int | None], Prompt], task: Message | None, *, has_query: bool
    ) -> tuple[Prompt, tuple[Message, ...]]:
        """Return a prompt and its messages, with the task among them.

        They begin with a message of the user if there is one.
        """
        prompt = make(self.budget)
        self._room = prompt.tokens["room"]
        window = prompt.window.messages
        if not has_query and window and window[0].role == "user":
            # The task is of an earlier run, and the window begins properly without it.
            task = None
        if task is not None and task.id not in {message.id for message in window}:
            # The newest turn alone is too long: its end is shown, and the message that began it.
            prompt = make(max(0, prompt.tokens["budget"] - task.tokens))
            window = prompt.window.messages
        if task is not None or any(message.role == "user" for message in window):
            # A window must not begin with the end of another run's turn.
            window = tuple(dropwhile(lambda message: message.role != "user", window))
        if task is not None and task.id not in {message.id for message in window}:
            window = (task, *window)
        return prompt, window


def _append(chat: Chat, messages: Sequence[Message]) -> list[Message]:
    """Store messages and return them; one that an earlier run stored with other content stays as it is."""
    try:
        return chat.append(messages)
    except Conflict:
        ids = {message.id for message in messages}
        there = {message.id: message for message in chat.history() if message.id in ids}
        return [*there.values(), *chat.append([message for message in messages if message.id not in there])]


def _is_left_out(message: Message, window: Window) -> bool:
    ranges = [(omission.first, omission.last) for omission in window.omitted]
    ranges += [(summary.first, summary.last) for summary in window.summaries]
    return any(first <= message.seq <= last for first, last in ranges)


def _assemble(
    system: Sequence[SystemPromptPart], prompt: Prompt, messages: Sequence[ModelMessage]
) -> list[ModelMessage]:
    """Return messages with the system text, summaries and recall block of a prompt in their places."""
    front = [ModelRequest(parts=list(system))] if system else []
    front += [user(str(summary["content"])) for summary in prompt.messages[: len(prompt.window.summaries)]]
    if not prompt.recalled:
        return [*front, *messages]
    place = next((n for n in range(len(messages) - 1, -1, -1) if _is_user(messages[n])), 0)
    return [*front, *messages[:place], user(prompt.recalled), *messages[place:]]


def _behind_calls(messages: Iterable[ModelMessage], awaited: set[str]) -> Iterable[ModelMessage]:
    """Return messages with results right after their calls, and calls whose results are awaited last.

    Concurrent runs in a chat can separate them.
    """
    blocks: list[list[ModelMessage]] = []
    calls: dict[str, list[ModelMessage]] = {}
    for message in messages:
        block = next((calls[call] for call in answered_calls([message]) if call in calls), None)
        if block is None:
            blocks.append(block := [])
        block.append(message)
        calls |= dict.fromkeys(calls_of(message), block)
    blocks.sort(key=lambda block: not awaited.isdisjoint({*calls_of(block[0])} - answered_calls(block)))
    return chain.from_iterable(blocks)


def _visible(given: Sequence[ModelMessage], begin: int, hidden: set[PartIndex]) -> Iterator[ModelMessage]:
    """Yield the messages from `begin` on without hidden parts and without the system prompt."""
    system, kept = first_request(given), _newest(given)
    for number, message in enumerate(given[begin:], begin):
        if isinstance(message, ModelResponse):
            if number >= kept or PartIndex(number) not in hidden:
                yield message
            continue
        parts = [
            part
            for place, part in enumerate(message.parts)
            if (number >= kept or PartIndex(number, place) not in hidden)
            and not (number == system and isinstance(part, SystemPromptPart))
        ]
        if len(parts) == len(message.parts):
            yield message
        elif parts or number == len(given) - 1:
            yield replace(message, parts=parts)


def _with_results(given: Sequence[ModelMessage], texts: Mapping[PartIndex, str]) -> list[ModelMessage]:
    """Return messages with other texts of the results at these places."""
    messages = list(given)
    for (number, place), text in texts.items():
        message = messages[number]
        part = message.parts[place]
        if isinstance(message, ModelRequest) and isinstance(part, ToolReturnPart):
            short = ToolReturnPart(part.tool_name, text, part.tool_call_id)
            parts = [*message.parts[:place], short, *message.parts[place + 1 :]]
            messages[number] = replace(message, parts=parts)
    return messages


def _is_user(message: ModelMessage) -> bool:
    return isinstance(message, ModelRequest) and any(
        isinstance(part, UserPromptPart | SpeechPart) for part in message.parts
    )


def _system(messages: Sequence[ModelMessage]) -> list[SystemPromptPart]:
    first = first_request(messages)
    return (
        [part for part in messages[first].parts if isinstance(part, SystemPromptPart)] if first >= 0 else []
    )


def _begin(messages: Sequence[ModelMessage], run: str | None) -> int:
    """Return the index of the first message of a run, or of the message to answer, whichever is lower."""
    newest = _newest(messages)
    return min(next((n for n, message in enumerate(messages) if message.run_id == run), newest), newest)


def _newest(messages: Sequence[ModelMessage]) -> int:
    """Return the index of the message to answer, which is always shown.

    That is the last message, or that of the calls whose results it has.
    """
    last = len(messages) - 1
    results = answered_calls(messages[-1:])
    calls = (n for n in range(last, -1, -1) if not results.isdisjoint(calls_of(messages[n])))
    return next(calls, last)


def toolset(tools: Iterable[Tool]) -> FunctionToolset[object]:
    """Return a toolset of tools, for instance those of `Memory.tools`.

    For an agent with a chat for each run, pass a function:
    `toolsets=[lambda ctx: toolset(memory.tools(chat_of(ctx)))]`.
    """
    made = [
        PydanticTool[object].from_schema(
            _function_of(tool), tool.name, tool.description, json_schema=dict(tool.parameters)
        )
        for tool in tools
    ]
    return FunctionToolset(made, id="holdfast")


def _function_of(tool: Tool) -> Callable[..., str]:
    def call(**arguments: object) -> str:
        return tool(arguments).text

    return call
