"""The OpenAI Agents SDK: a session whose items are the messages of a chat, and our tools as its function tools.

>>> from agents import Agent, Runner                                                           # doctest: +SKIP
>>> agent = Agent(name="Coach", tools=tools(memory, "ada-1"))                                   # doctest: +SKIP
>>> await Runner.run(agent, "Hello", session=HoldfastSession(memory, "ada-1"))                  # doctest: +SKIP
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, cast
from uuid import uuid4

from holdfast.contract import check_provider
from holdfast.errors import Conflict, InvalidInput, MissingExtra
from holdfast.integrations.opaque_items import recalled, told
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
_KIND = "openai_agents"  # the key in `meta` that says what a message is to the session:
_ITEM, _TAKEN_BACK, _CLEARED = "item", "taken back", "cleared"
_LONGEST_TYPE = 40  # characters of the type of an item that nobody knows


class WrongItem(InvalidInput, TypeError):
    """An item of a session cannot be stored; none was. It is a TypeError as well, which the SDK's own sessions raise."""


class HoldfastSession:
    """Keep the history of a session of the OpenAI Agents SDK in a chat of a memory.

    Each item is one message of the chat whose id is `session_id`, so that recall, windows, compaction and
    learning work on it; the item itself is in `raw` and comes back as it was. Messages that others append to
    the chat are no items of the session.

    The log is only added to. An item that is taken back, and all items when the session is cleared, are no
    longer in the session, but stay in the chat, where a message says what became of them; `Memory.erase`
    removes words for ever. Every method may be called from many tasks, threads and processes at once: no item
    is given to two who pop it. A call that is cancelled while it writes ends when that is done.

    With a budget, a run is given what `Chat.prompt` gives in place of all items: what is known, the
    summaries, the newest items that fit, from a user's turn on where one is in reach, and before the newest
    message of the user what is recalled for it.

    Args:
        memory: whose the chat is.
        session_id: the id of the chat.
        budget: tokens at most of what `get_items` gives where neither the caller nor the settings name a
            limit; None for all items. What a run adds is not counted.
        session_settings: as in the SDK; `limit` is how many items `get_items` gives, None for all.

    Raises:
        InvalidInput: `memory` is none, the budget is negative, or the id is blank, longer than 512 bytes in
            UTF-8, or has control characters.

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
        """Read the latest items, oldest first; without a limit as many as the settings or the budget say.

        A limit below zero means all, as in the SDK's own sessions.

        Raises:
            InvalidInput: the limit is no whole number.

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
        """Return what a prompt of the chat shows, of its messages those that are in the session."""
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
        """Store items after those that are there, all or none.

        Raises:
            WrongItem: one is no dict, or not JSON; none was stored.

        """
        try:
            await _settled(self._chat.append([_message(item) for item in items]))
        except InvalidInput as error:
            raise WrongItem(error.what, error.todo) from error

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the newest item back and return it; None if there is none. Takes the same however many were taken back."""
        refused = ""
        while (found := await self._newest(2)).items:
            newest = found.items[0]
            try:
                await _settled(self._chat.append([_taken_back(found, self.session_id)]))
            except Conflict:  # another was faster, so it is the one before
                if newest.id == refused:  # or else it was not us who wrote that
                    raise
                refused = newest.id
            else:
                return _item(newest)
        return None

    async def clear_session(self) -> None:
        """Begin anew: what was added until now is no longer in the session."""
        if (await self._newest(1)).items:
            cleared = Message("system", "[the session was cleared]", meta={_KIND: _CLEARED})
            await _settled(self._chat.append([cleared]))

    async def _get_compaction_snapshot(self, limit: int, **_: object) -> _Snapshot:
        """Return the latest items with what replaces them: `OpenAIResponsesCompactionSession` looks for it by this name.

        Of sessions that do not have it, it compacts only those whose every item was in the last exchange with
        the model.
        """
        found = await self._newest(limit + 1)
        latest = found.items[:limit][::-1]

        async def replace_suffix(start: int, output: list[TResponseInputItem]) -> bool:
            return await self._replaced(latest[start:], output)

        return _Snapshot([_item(message) for message in latest], len(found.items) <= limit, replace_suffix)

    async def _replaced(self, messages: Sequence[Message], output: Sequence[TResponseInputItem]) -> bool:
        """Take the newest items back and add others in one transaction; do nothing if they are not the newest any more."""
        found = await self._newest(len(messages) + 1)
        if not messages or _ids(found.items[: len(messages)]) != _ids(reversed(messages)):
            return False
        try:
            await _settled(
                self._chat.append(
                    [_taken_back(found, self.session_id, len(messages)), *map(_message, output)]
                )
            )
        except Conflict:  # another was faster
            return False
        return True

    async def _newest(self, limit: int | None, *, jump: bool = True) -> _Found:
        """Read the items that are in the session, newest first: all, or a few without what was taken back between them."""
        items: list[Message] = []
        gone: set[str] = set()
        jumps: dict[str, _Jump] = {}
        newest, before, to, size = "", None, "", _PAGE if limit is None else min(_PAGE, limit + 8)
        while limit is None or len(items) < limit:
            page = await self._chat.history(size, before=before)
            if to and (not page or page[-1].id != to):
                return await self._newest(limit, jump=False)  # it was imported: its numbers are others
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
    """Items, newest first; the newest message of the chat; and which older items are known to have been taken back."""

    items: list[Message]
    newest: str
    gone: frozenset[str]


class _Jump(NamedTuple):
    """Which items were taken back, and which is the next one before them that was not: its id and its number, or "" and 0."""

    taken: frozenset[str]
    to: str
    below: int


class _Snapshot(NamedTuple):
    """The latest items, whether they are all, and what puts others in place of those from one of them on."""

    items: list[TResponseInputItem]
    complete: bool
    replace_suffix: Callable[[int, list[TResponseInputItem]], Awaitable[bool]]


async def _settled(write: Coroutine[object, object, object]) -> None:
    """Wait for a write to its end, however often the caller is cancelled: who retries then knows what was stored."""
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
        task.exception()  # what became of it is for those who read; the caller has gone
        raise cancelled


def _message(item: object) -> Message:
    """Make the message that stands for an item."""
    if not isinstance(item, Mapping):
        raise InvalidInput(f"An item of a session is {type(item).__name__}.", "Add dicts, as the SDK does.")
    said = told(item) or Message(_role(item), f"[{_type(item)}]")
    return replace(said, raw=item, meta={_KIND: _ITEM})


def _role(item: Mapping[str, object]) -> Role:
    """Return who an item is from that has nothing to read: it was the model that searched, ran code or called a server."""
    role = item.get("role")
    return role if role in ROLES else "assistant"


def _type(item: Mapping[str, object]) -> str:
    kind = item.get("type")
    return shorten_line(clean(kind), _LONGEST_TYPE) or "item" if isinstance(kind, str) else "item"


def _item(message: Message) -> TResponseInputItem:
    return cast("TResponseInputItem", message.raw)


def _taken_back(found: _Found, chat: str, count: int = 1) -> Message:
    """Make the message by which the newest items are taken back: of two for the same newest one, the log takes only the first.

    It also says where who reads backwards can go on when he comes to what was the newest message: at the next
    item, with the older ones that are known to have been taken back. So nobody has to look at all that was
    taken back before.
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
    """Read where to go on, and from which message; a message of a version before does not say so."""
    last, below = message.meta.get("last"), message.meta.get("below", 0)
    if not isinstance(last, str) or not isinstance(below, int):
        return {}
    return {last: _Jump(_taken(message), str(message.meta.get("next", "")), below)}


def _taken(message: Message) -> frozenset[str]:
    """Read which items a message takes back."""
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
    """Make function tools for an agent of those of `Memory.tools`, with the same options; the session's id is the chat's.

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
        strict_json_schema=False,  # not every parameter has to be there
    )
