"""The Claude Agent SDK: a session store whose transcripts are chats. It takes and gives plain dicts, and imports no SDK.

>>> from claude_agent_sdk import ClaudeAgentOptions                                            # doctest: +SKIP
>>> ClaudeAgentOptions(session_store=HoldfastSessionStore(memory))                              # doctest: +SKIP
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, Required, TypedDict, cast

from holdfast.contract import check_provider
from holdfast.errors import Conflict, InvalidInput, MissingExtra
from holdfast.integrations.opaque_items import told
from holdfast.messages import formats
from holdfast.store.message_rows import check_time, to_micros
from holdfast.types import Message

if TYPE_CHECKING:
    from holdfast.aio import AsyncChat
    from holdfast.memory import Memory

_ROOT = "claude"  # the ids of the chats begin with it
_PAGE = 256  # messages read at once
_ENTRY = {"claude_agent": "entry"}  # the `meta` of a message that stands for one
_LONGEST_PROJECT = 200  # characters of the key of a project that are legible in the id of a chat
_LONGEST_UUID = 100  # characters of a `uuid` that can be the id of a message
_UNSAFE = re.compile(r"[%/\x00-\x1f\x7f\ud800-\udfff]")
_ESCAPED = re.compile(r"%(D[89A-F][0-9A-F]{2}|[0-7][0-9A-F])")


class Entry(TypedDict, total=False):
    """One line of a transcript, with whatever else the SDK has written into it."""

    type: Required[str]
    uuid: str
    timestamp: str


class Listed(TypedDict):
    """A session and when the last thing in it was said, in milliseconds since the epoch."""

    session_id: str
    mtime: int


class SessionSummary(TypedDict):
    """A session with what the SDK shows of it in a list: its title, its first prompt and the like."""

    session_id: str
    mtime: int
    data: dict[str, object]


_Fold = Callable[[SessionSummary | None, Mapping[str, object], Sequence[object]], SessionSummary]


class _Folded(NamedTuple):
    """How far a transcript was read for its summary, by the `seq` of the last message, and what came of it."""

    through: int = 0
    summary: SessionSummary | None = None


class HoldfastSessionStore:
    """Keep the transcripts of the Claude Agent SDK in the chats of a memory.

    A transcript is one chat, `claude/<project_key>/<session_id>`, and so is that of a subagent,
    `claude/<project_key>/<session_id>/<subpath>`; all belong to the user of the memory. What the user and the
    assistant said is found by recall, with the time at which it was said. What the program keeps beside it
    (titles, snapshots, progress) is stored in its place as a result, without text, of a call that nobody
    made: no window shows it, and none of its words is found. Each entry is kept whole and comes back as it
    was; the same `uuid` twice is one entry.

    Args:
        memory: whose the transcripts are.

    Raises:
        InvalidInput: `memory` is none.

    """

    def __init__(self, memory: Memory) -> None:
        check_provider(memory)
        self._memory = memory.aio
        # By space, with the number of erasures at which it was made: what was erased then is in no summary.
        self._folded: dict[str, tuple[int, dict[str, _Folded]]] = {}

    async def append(self, key: Mapping[str, object], entries: Sequence[Mapping[str, object]]) -> None:
        """Store entries after those that are there, all or none; those whose `uuid` is there already are left out.

        Raises:
            InvalidInput: the key names nothing, or an entry is not JSON; none was stored.

        """
        chat = self._memory.chat(_chat_id(key))
        fresh = _first_of_each(map(_message, entries))
        while True:
            try:
                await chat.append(fresh)
            except Conflict:  # an entry was stored under the same uuid with other words; the first one stays
                stored = {message.id async for page in _pages(chat) for message in page}
                fresh = [message for message in fresh if message.id not in stored]
            else:
                return

    async def load(self, key: Mapping[str, object]) -> list[Entry] | None:
        """Read a transcript in the order in which it was stored; None if there is none.

        Raises:
            InvalidInput: the key names nothing.

        """
        chat = self._memory.chat(_chat_id(key))
        return [entry async for page in _pages(chat) for entry in _entries(page)] or None

    async def list_sessions(self, project_key: str) -> list[Listed]:
        """List the sessions of a project, without those of subagents."""
        return list((await self._sessions(project_key)).values())

    async def list_session_summaries(self, project_key: str) -> list[SessionSummary]:
        """Summarise the sessions of a project, as the SDK does it.

        A summary is made of the transcript whenever it is asked for, of what is new since the last time, so
        that it says what the transcript says, whoever writes at the same time.

        Raises:
            MissingExtra: the SDK is not installed.

        """
        fold, space = _fold(), self._memory.scope.space
        erasures = len(await self._memory.changes(kind="erasure"))
        before, folded = self._folded.get(space, (erasures, {}))
        if before != erasures:
            folded = {}
        self._folded[space] = erasures, folded
        sessions = (await self._sessions(project_key)).items()
        return await asyncio.gather(*(self._summary(fold, folded, chat, listed) for chat, listed in sessions))

    async def _summary(
        self, fold: _Fold, folded: dict[str, _Folded], chat: str, listed: Listed
    ) -> SessionSummary:
        through, summary = folded.get(chat, _Folded())
        async for page in _pages(self._memory.chat(chat), through):
            summary = fold(summary, listed, list(_entries(page)))
            through = page[-1].seq
        folded[chat] = _Folded(through, summary)
        return {**listed, "data": dict(summary["data"]) if summary else {}}

    async def delete(self, key: Mapping[str, object]) -> None:
        """Erase a transcript, with those of its subagents unless the key names one of these, and all learned from them.

        As `Memory.erase`, once for each transcript, which writes a file anew each time; receipts without
        words stay. What is not there is no error.

        Raises:
            InvalidInput: the key names nothing.
            Denied: a constraint was confirmed in the session, and it is not the user who acts.
            Unavailable: it is erased, but others kept reading the file, which still holds remains.

        """
        main = _chat_id(key)
        below = {} if _is_below(key) else await self._found(main)
        for chat in [*(f"{main}/{rest}" for rest in below), main]:  # in this order a retry finds what is left
            with suppress(InvalidInput):  # there is nothing of that name
                await self._memory.erase(chat=chat)

    async def list_subkeys(self, key: Mapping[str, object]) -> list[str]:
        """List the `subpath` of each subagent of a session.

        Raises:
            InvalidInput: the key names nothing.

        """
        return [_unescape(rest) for rest in await self._found(_chat_id(key))]

    async def _sessions(self, project_key: str) -> dict[str, Listed]:
        """Find the sessions of a project by the ids of their chats."""
        project = _project(project_key)
        return {
            f"{project}/{rest}": {"session_id": _unescape(rest), "mtime": to_micros(newest) // 1000}
            for rest, newest in (await self._found(project)).items()
            if "/" not in rest
        }

    async def _found(self, above: str) -> dict[str, datetime]:
        """Return the rest of the id of each chat below an id, with the time of its newest message."""
        chats = await self._memory.chats(agent="", archived=None)
        return {
            chat.id.removeprefix(f"{above}/"): chat.newest
            for chat in chats
            if chat.messages and chat.id.startswith(f"{above}/")
        }


async def _pages(chat: AsyncChat, after: int = 0) -> AsyncIterator[list[Message]]:
    """Read a chat from after a `seq` to its end."""
    while page := await chat.history(_PAGE, after=after):
        yield page
        after = page[-1].seq


def _entries(page: Iterable[Message]) -> Iterable[Entry]:
    """Return the entries that messages were made from; a message that another has put there is none."""
    return (cast("Entry", message.raw) for message in page if message.meta == _ENTRY)


def _first_of_each(messages: Iterable[Message]) -> list[Message]:
    """Leave out what has the id of one before it."""
    kept: dict[object, Message] = {}
    for message in messages:
        kept.setdefault(message.id or len(kept), message)
    return list(kept.values())


def _message(entry: Mapping[str, object]) -> Message:
    """Make the message that stands for an entry."""
    if not isinstance(entry, Mapping):
        raise InvalidInput(
            f"An entry of a transcript is {type(entry).__name__}.", "Append dicts, as the SDK does."
        )
    said = entry.get("message") if _is_spoken(entry) else None
    message = told(said) if isinstance(said, Mapping) else None
    return replace(
        message or Message("tool", call_id="none"), id=_id(entry), at=_time(entry), raw=entry, meta=_ENTRY
    )


def _is_spoken(entry: Mapping[str, object]) -> bool:
    """Return whether an entry is a part of the conversation, by the rules of the importer for Claude Code."""
    by_program = entry.get("isMeta") is True or entry.get("isCompactSummary") is True
    return entry.get("type") in ("user", "assistant") and not by_program


def _id(entry: Mapping[str, object]) -> str:
    uuid = entry.get("uuid")
    if not isinstance(uuid, str) or not uuid:
        return ""
    legible = len(uuid) <= _LONGEST_UUID and uuid.isascii() and uuid.isprintable() and uuid.strip()
    return uuid if legible else _digest(uuid)


def _time(entry: Mapping[str, object]) -> datetime | None:
    try:
        at = formats.read_time(entry.get("timestamp"))
        if at is not None:
            check_time(at)
    except InvalidInput:
        return None
    return at


def _chat_id(key: Mapping[str, object]) -> str:
    """Name the chat of a transcript, such that no two transcripts have the same one."""
    parts = [_project(key.get("project_key")), _escape(_text(key, "session_id"))]
    if _is_below(key):
        parts += map(_escape, _text(key, "subpath").split("/"))
    return "/".join(parts)


def _is_below(key: Mapping[str, object]) -> bool:
    """Return whether a key names the transcript of a subagent."""
    return key.get("subpath") is not None


def _project(key: object) -> str:
    """Name what the chats of a project have in common; a key that is very long is told by its digest."""
    project = _escape(_text({"project_key": key}, "project_key"))
    return f"{_ROOT}/{project if len(project) <= _LONGEST_PROJECT else '%' + _digest(project)}"


def _text(key: Mapping[str, object], name: str) -> str:
    value = key.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidInput(
            f"The key of a session has no {name}.", f"Pass text that is not empty as {name!r}."
        )
    return value


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _escape(part: str) -> str:
    return _UNSAFE.sub(lambda found: f"%{ord(found[0]):02X}", part)


def _unescape(part: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), part)


def _fold() -> _Fold:
    try:
        return cast("_Fold", import_module("claude_agent_sdk").fold_session_summary)
    except ImportError as error:
        raise MissingExtra(
            "Summaries of sessions are made by the Claude Agent SDK.", "Run: pip install claude-agent-sdk."
        ) from error
