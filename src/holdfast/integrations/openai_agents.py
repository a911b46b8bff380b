"""The OpenAI Agents SDK: a session whose items are the messages of a chat, and function tools.

>>> from agents import Agent, Runner                                            # doctest: +SKIP
>>> agent = Agent(name="Coach", tools=tools(memory, "ada-1"))                    # doctest: +SKIP
>>> await Runner.run(agent, "Hello", session=HoldfastSession(memory, "ada-1"))   # doctest: +SKIP
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, cast
from uuid import uuid4

from holdfast.contract import check_provider
from holdfast.errors import Conflict, InvalidInput, MissingExtra
from holdfast.integrations.opaque_items import read_message, recalled
from holdfast.prompt.summary_block import summary_message
from holdfast.text.clean import clean
from holdfast.text.references import write_reference
from holdfast.text.shorten import shorten_line
from holdfast.types import ROLES, Message, Role, check_count

try:
    from agents import FunctionTool, SessionSettings
except ImportError as error:
    raise MissingExtra.of("openai-agents") from error

if TYPE_CHECKING:
    from agents import TResponseInputItem
    from agents.tool_context import ToolContext

    from holdfast.chat import Chat
    from holdfast.memory import Memory
    from holdfast.tools.tool import Tool

_PAGE = 256  # messages read at once
_KIND = "openai_agents"  # the key in `meta` for the role of a message in the session, one of:
_ITEM, _TAKEN_BACK, _CLEARED = "item", "taken back", "cleared"
_LONGEST_TYPE = 40  # characters of an unknown type of items


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
    newest message of the user.

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
        self._chat = memory.aio.chat(session_id)
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
            return await self._prompted(self._budget)
        given: object = limit
        every = given is None or (isinstance(given, int) and given < 0)
        found = await self._newest(None if every else check_count(given, "limit"))
        return [_item(message) for message in reversed(found.items)]

    async def _prompted(self, budget: int) -> list[TResponseInputItem]:
        """Return the prompt of the chat as items, without messages that are not in the session."""
        newest = await self._newest(_PAGE)
        query = next((message.content for message in newest.items if message.role == "user"), "")
        prompt = await self._chat.prompt(budget, query or None)
        there = {message.id for message in (await self._newest(len(prompt.window.messages))).items}
        window = [message for message in prompt.window.messages if message.id in there]
        items = [_item(message) for message in window]
        if found := recalled(prompt):
            users = [place for place, message in enumerate(window) if message.role == "user"]
            items.insert(users[-1] if users else 0, {"role": "user", "content": found})
        summaries = (str(summary_message(one)["content"]) for one in prompt.window.summaries)
        known: list[TResponseInputItem] = [{"role": "user", "content": text} for text in summaries]
        if prompt.system:
            known.insert(0, {"role": "system", "content": prompt.system})
        return known + items

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items, all or none.

        Raises:
            WrongItem: one is not a dict, or not JSON; none was stored.

        """
        try:
            await _settled(self._chat.append([_message(item) for item in items]))
        except InvalidInput as error:
            raise WrongItem(error.what, error.todo) from error

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the newest item and return it; None if there is none.

        The time it takes does not depend on the number of items popped before.
        """
        refused = ""
        while (found := await self._newest(2)).items:
            newest = found.items[0]
            try:
                await _settled(self._chat.append([_taken_back(found, self.session_id)]))
            except Conflict:
                # A concurrent call popped the item, so the next one is tried. The same item twice means that
                # a message of another kind has the id.
                if newest.id == refused:
                    raise
                refused = newest.id
            else:
                return _item(newest)
        return None

    async def clear_session(self) -> None:
        """Remove all items."""
        if (await self._newest(1)).items:
            cleared = Message("system", "[the session was cleared]", meta={_KIND: _CLEARED})
            await _settled(self._chat.append([cleared]))

    async def _get_compaction_snapshot(self, limit: int, **_: object) -> _Snapshot:
        """Return the newest items with a function that replaces them, for `OpenAIResponsesCompactionSession`.

        The SDK looks the method up by this name. It compacts a session without it only if the last request to
        the model had all items.
        """
        found = await self._newest(limit + 1)
        latest = found.items[:limit][::-1]

        async def replace_suffix(start: int, output: list[TResponseInputItem]) -> bool:
            return await self._replaced(latest[start:], output)

        return _Snapshot([_item(message) for message in latest], len(found.items) <= limit, replace_suffix)

    async def _replaced(self, messages: Sequence[Message], output: Sequence[TResponseInputItem]) -> bool:
        """Replace the newest items in one transaction; return False if there are newer ones by now."""
        found = await self._newest(len(messages) + 1)
        if not messages or _ids(found.items[: len(messages)]) != _ids(reversed(messages)):
            return False
        try:
            removal = _taken_back(found, self.session_id, len(messages))
            await _settled(self._chat.append([removal, *map(_message, output)]))
        except Conflict:
            # A concurrent call changed the newest items.
            return False
        return True

    async def _newest(self, limit: int | None, *, jump: bool = True) -> _Found:
        """Return the newest items of the session, at most `limit`, newest first.

        The messages that record a removal say which items were removed and where to read on; `jump` follows
        them.
        """
        items: list[Message] = []
        gone: set[str] = set()
        jumps: dict[str, _Jump] = {}
        newest, before, to, size = "", None, "", _PAGE if limit is None else min(_PAGE, limit + 8)
        while limit is None or len(items) < limit:
            page = await self._chat.history(size, before=before)
            if to and (not page or page[-1].id != to):
                # The chat was imported, and its messages have other numbers.
                return await self._newest(limit, jump=False)
            newest, to = newest or (page[-1].id if page else ""), ""
            for message in reversed(page):
                if message.id in jumps and jump and limit is not None:
                    taken, to, below = jumps[message.id]
                    gone -= taken
                    before = below + 1
                    break
                kind = message.meta.get(_KIND)
                if kind == _CLEARED:
                    return _Found(items, newest, frozenset())
                if kind == _TAKEN_BACK:
                    gone |= {*_taken(message), *_texts(message.meta.get("gone"))}
                    jumps |= _jump(message)
                elif message.id in gone:
                    gone.remove(message.id)
                elif kind == _ITEM and message.raw is not None:
                    items.append(message)
                    if len(items) == limit:
                        break
            else:
                if len(page) < size:
                    break
                before, size = page[0].seq, min(_PAGE, 2 * size)
        return _Found(items, newest, frozenset(gone))


class _Found(NamedTuple):
    """Items, newest first; the id of the chat's newest message; the ids of older items known as removed."""

    items: list[Message]
    newest: str
    gone: frozenset[str]


class _Jump(NamedTuple):
    """The ids of removed items, with id and `seq` of the next older item; "" and 0 if there is none."""

    taken: frozenset[str]
    to: str
    below: int


class _Snapshot(NamedTuple):
    """The newest items, whether they are all, and a function that replaces those from an index on."""

    items: list[TResponseInputItem]
    complete: bool
    replace_suffix: Callable[[int, list[TResponseInputItem]], Awaitable[bool]]


async def _settled(write: Coroutine[object, object, object]) -> None:
    """Await a write to its end even if the caller is cancelled, so that a retry reads what was stored."""
    task = asyncio.ensure_future(write)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        await task
    else:
        # Retrieved, or asyncio would log it.
        task.exception()
        raise cancelled


def _message(item: object) -> Message:
    """Return the message to store for an item."""
    if not isinstance(item, Mapping):
        what = f"An item of a session is of the type {type(item).__name__!r}."
        raise InvalidInput(what, "Add dicts, as the SDK does.")
    message = read_message(item) or Message(_role(item), f"[{_type(item)}]")
    return replace(message, raw=item, meta={_KIND: _ITEM})


def _role(item: Mapping[str, object]) -> Role:
    """Return the role of an item of unknown form: that of the model, which searched or called a server."""
    role = item.get("role")
    return role if role in ROLES else "assistant"


def _type(item: Mapping[str, object]) -> str:
    kind = item.get("type")
    return shorten_line(clean(kind), _LONGEST_TYPE) or "item" if isinstance(kind, str) else "item"


def _item(message: Message) -> TResponseInputItem:
    return cast("TResponseInputItem", message.raw)


def _taken_back(found: _Found, chat: str, count: int = 1) -> Message:
    """Return the message that removes the newest items; its id lets the log accept only one for an item.

    It names the newest message of the chat, the next older item, and the items known as removed before that.
    A reader that arrives at that message goes on at the next item, and reads nothing that was removed.
    """
    (newest, *also), others = found.items[:count], found.items[count:]
    meta: dict[str, object] = {
        _KIND: _TAKEN_BACK,
        "message": newest.id,
        "by": uuid4().hex,
        "last": found.newest,
    }
    if also:
        meta["also"] = _ids(also)
    if others:
        meta |= {"next": others[0].id, "below": others[0].seq}
    if also or others:
        meta["gone"] = sorted(found.gone.union(_ids(also)))
    text = f"[message {write_reference(chat, newest.seq)} was taken back]"
    if also:
        text = f"[messages {write_reference(chat, also[-1].seq, newest.seq)} were compacted]"
    return Message("system", text, id=f"taken-back-{newest.id}", meta=meta)


def _jump(message: Message) -> dict[str, _Jump]:
    """Return where to read on, by the id of the message to read on from; old messages have none."""
    last, below = message.meta.get("last"), message.meta.get("below", 0)
    if not isinstance(last, str) or not isinstance(below, int):
        return {}
    return {last: _Jump(_taken(message), str(message.meta.get("next", "")), below)}


def _taken(message: Message) -> frozenset[str]:
    """Return the ids of the items that a message removes."""
    return frozenset([str(message.meta.get("message")), *_texts(message.meta.get("also"))])


def _ids(messages: Iterable[Message]) -> list[str]:
    return [message.id for message in messages]


def _texts(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


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
    return [_function_tool(tool) for tool in made]


def _function_tool(tool: Tool) -> FunctionTool:
    async def invoke(_: ToolContext[object], arguments: str) -> str:
        return (await asyncio.to_thread(tool, arguments)).text

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=dict(tool.parameters),
        on_invoke_tool=invoke,
        # Strict schemas need every parameter.
        strict_json_schema=False,
    )
