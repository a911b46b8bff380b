"""The OpenAI Agents SDK: a session whose items are the messages of a chat, and function tools.

>>> from agents import Agent, Runner                                            # doctest: +SKIP
>>> agent = Agent(name="Coach", tools=tools(memory, "ada-1"))                    # doctest: +SKIP
>>> await Runner.run(agent, "Hello", session=HoldfastSession(memory, "ada-1"))   # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple, cast

from holdfast.contract import check_provider
from holdfast.errors import InvalidInput, MissingExtra
from holdfast.integrations.off_loop import off_loop
from holdfast.integrations.session_items import SessionItems, item_message
from holdfast.types import check_count

try:
    from agents import FunctionTool, SessionSettings
except ImportError as error:
    raise MissingExtra.of("openai-agents") from error

if TYPE_CHECKING:
    from agents import TResponseInputItem
    from agents.memory import OpenAIResponsesCompactionArgs
    from agents.tool_context import ToolContext

    from holdfast import Chat, Memory, Tool
    from holdfast.port.items import Payload
    from holdfast.types import Message

_MARK = "openai_agents"  # in `meta`, of items
_PAGE = 256  # messages read at once


class WrongItem(InvalidInput, TypeError):
    """An item of a session cannot be stored; none was. A TypeError too, as the SDK's sessions raise it."""


class HoldfastSession:
    """Store the history of a session of the OpenAI Agents SDK in a chat of a memory.

    Each item is one message of the chat whose id is `session_id`, so that recall, windows, compaction and
    learning work on it; the item itself is stored in `raw` and returned unchanged. Messages that others
    append to the chat are not items of the session.

    The log is append-only. Items that are popped or cleared leave the session but stay in the chat, followed
    by a message that records it; `Memory.erase` removes them. All methods are safe for concurrent tasks,
    threads and processes: no item is popped twice. A call that is cancelled while it writes ends after the
    write.

    With a budget, a run gets what `Chat.prompt` returns in place of all items: the knowledge block, the
    summaries, the newest items that fit, from a user's turn on if possible, and the recall block before the
    newest message of the user. The chat is compacted after a run that leaves more than that.

    Args:
        memory: the memory of the chat.
        session_id: the id of the chat.
        budget: maximum tokens that `get_items` returns if neither the caller nor the settings have a limit,
            without the items that the run adds; None for all items.
        session_settings: as in the SDK; `limit` is the number of items that `get_items` returns, or None.

    Raises:
        InvalidInput: `memory` is not a memory, the budget is negative, or the id is blank, longer than 512
            bytes in UTF-8, or has control characters.

    """

    def __init__(
        self,
        memory: Memory,
        session_id: str,
        *,
        budget: int | None = None,
        session_settings: SessionSettings | dict[str, object] | None = None,
    ) -> None:
        check_provider(memory)
        self._budget = None if budget is None else check_count(budget, "budget")
        self._memory = memory
        self._chat = memory.aio.chat(session_id)
        self._items = SessionItems(memory, session_id, _MARK)
        self.session_id = session_id
        self.session_settings: SessionSettings | None = SessionSettings().resolve(session_settings)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the newest items, oldest first; None as limit is that of the settings or the budget.

        A limit below zero means all, as in the SDK's own sessions.

        Raises:
            InvalidInput: the limit is not a whole number.

        """
        if limit is None:
            limit = SessionSettings().resolve(self.session_settings).limit
        if limit is None and self._budget is not None:
            return await self._prompt_items(self._budget)
        given: object = limit
        every = given is None or (isinstance(given, int) and given < 0)
        most = None if every else check_count(given, "limit")
        return await off_loop(self._memory, self._items.read, _item, most)

    async def _prompt_items(self, budget: int) -> list[TResponseInputItem]:
        """Return the prompt of the chat as items, without messages that are not in the session."""
        newest = await self._newest(_PAGE)
        query = next((message.content for message in newest if message.role == "user"), "")
        prompt = await self._chat.prompt(budget, query or None)
        there = {message.id for message in await self._newest(len(prompt.window.messages))}
        window = [message for message in prompt.window.messages if message.id in there]
        items = [_item(message) for message in window]
        if prompt.recalled:
            users = [place for place, message in enumerate(window) if message.role == "user"]
            items.insert(users[-1] if users else 0, {"role": "user", "content": prompt.recalled})
        summaries = prompt.messages[: len(prompt.window.summaries)]
        known: list[TResponseInputItem] = []
        known += ({"role": "user", "content": summary["content"]} for summary in summaries)
        if prompt.system:
            known.insert(0, {"role": "system", "content": prompt.system})
        return known + items

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items, all or none.

        Raises:
            WrongItem: one is not a dict, or not JSON; none was stored.

        """
        try:
            await off_loop(self._memory, self._items.append, [item_message(item, _MARK) for item in items])
        except InvalidInput as error:
            raise WrongItem(error.what, error.todo) from error

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the newest item and return it; None if there is none.

        The time it takes does not depend on the number of items popped before.
        """
        message = await off_loop(self._memory, self._items.pop)
        return None if message is None else _item(message)

    async def clear_session(self) -> None:
        """Remove all items."""
        await off_loop(self._memory, self._items.clear)

    # The SDK passes `args`, which are about its own compaction.
    async def run_compaction(self, args: OpenAIResponsesCompactionArgs | None = None) -> None:  # noqa: ARG002
        """Compact the chat if it takes more than the budget; the SDK does so after a run. See `Chat.compact`.

        Summaries then stand for older items in what `get_items` returns. Nothing is done without a budget.

        Raises:
            ModelFailed: the memory has a model, and it raised an error; what was stored before stays.

        """
        if self._budget is not None:
            await self._chat.compact(budget=self._budget)

    async def _get_compaction_snapshot(
        self, limit: int, *, prune_prefix: Callable[[TResponseInputItem], bool] | None = None
    ) -> _Snapshot:
        """Return the newest items with a function that replaces them, for `OpenAIResponsesCompactionSession`.

        It also removes the oldest items as far as `prune_prefix` says so: those that expired in an encrypted
        session. The SDK looks the method up by this name, and compacts a session without it only if the last
        request to the model had all items.
        """
        newest = await self._newest(limit + 1)
        latest = newest[:limit][::-1]

        async def replace_suffix(start: int, output: list[TResponseInputItem]) -> bool:
            fresh, replaced = [item_message(item, _MARK) for item in output], latest[start:]
            pruned: list[Payload] = []
            if prune_prefix is not None:
                older = (await self._newest(None))[len(replaced) :]
                pruned = list(takewhile(lambda item: prune_prefix(_item(item)), reversed(older)))
            return await off_loop(self._memory, self._items.replace, replaced, fresh, pruned)

        return _Snapshot([_item(message) for message in latest], len(newest) <= limit, replace_suffix)

    async def _newest(self, limit: int | None) -> list[Payload]:
        return await off_loop(self._memory, self._items.newest, limit)


class _Snapshot(NamedTuple):
    """The newest items, whether they are all, and a function that replaces those from an index on."""

    items: list[TResponseInputItem]
    complete: bool
    replace_suffix: Callable[[int, list[TResponseInputItem]], Awaitable[bool]]


def _item(message: Message | Payload) -> TResponseInputItem:
    return cast("TResponseInputItem", message.raw)


def tools(
    memory: Memory,
    chat: Chat | str | None = None,
    *,
    allow: Iterable[str] | None = None,
    read_only: bool | Iterable[str] = False,
    confirm: Callable[[str], bool] | None = None,
) -> list[FunctionTool]:
    """Return the tools of `Memory.tools` as function tools; pass the id of the session as `chat`.

    Raises:
        InvalidInput: an option is of the wrong kind.

    """
    made = memory.tools(chat, allow=allow, read_only=read_only, confirm=confirm)
    return [_function_tool(memory, tool) for tool in made]


def _function_tool(memory: Memory, tool: Tool) -> FunctionTool:
    async def invoke(_: ToolContext[object], arguments: str) -> str:
        return (await off_loop(memory, tool, arguments)).text

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=dict(tool.parameters),
        on_invoke_tool=invoke,
        # Strict schemas need every parameter.
        strict_json_schema=False,
    )
