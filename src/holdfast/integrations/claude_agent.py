"""The Claude Agent SDK: a session store whose transcripts are chats. It uses plain dicts and imports no SDK.

>>> from claude_agent_sdk import ClaudeAgentOptions                # doctest: +SKIP
>>> ClaudeAgentOptions(session_store=HoldfastSessionStore(memory))  # doctest: +SKIP
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, Required, TypedDict, cast

from holdfast.contract import check_provider
from holdfast.errors import Conflict, InvalidInput, MissingExtra
from holdfast.integrations.framework_keys import digest, escape, unescape
from holdfast.integrations.opaque_items import read_message
from holdfast.port import formats
from holdfast.types import Message

if TYPE_CHECKING:
    from holdfast import Memory

_EPOCH, _MILLISECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)
_ROOT = "claude"  # the prefix of the ids of the chats
_PAGE = 256  # messages read at once
_BY_PROGRAM = ("isMeta", "isCompactSummary", "isApiErrorMessage")  # marks of what nobody said
_ENTRY = {"claude_agent": "entry"}  # the `meta` of a message made of an entry
_LONGEST_PROJECT = 200  # characters of a project key in the id of a chat; a longer one is hashed
_LONGEST_UUID = 100  # characters of a `uuid` as the id of a message; a longer one is hashed


class Entry(TypedDict, total=False):
    """One line of a transcript, with any other fields of the SDK."""

    type: Required[str]
    uuid: str
    timestamp: str


class Listed(TypedDict):
    """A session and the time of its newest message, in milliseconds since the epoch."""

    session_id: str
    mtime: int


class SessionSummary(TypedDict):
    """A session with the data that the SDK lists: title, first prompt and others."""

    session_id: str
    mtime: int
    data: dict[str, object]


_Fold = Callable[[SessionSummary | None, Mapping[str, object], Sequence[object]], SessionSummary]


class _FoldedSummary(NamedTuple):
    """The summary of a transcript up to a `seq`."""

    through: int = 0
    summary: SessionSummary | None = None


class HoldfastSessionStore:
    """Store the transcripts of the Claude Agent SDK as chats of a memory.

    A transcript is one chat, `claude/<project_key>/<session_id>`, and so is that of a subagent,
    `claude/<project_key>/<session_id>/<subpath>`; all belong to the user of the memory. Recall finds the
    messages of the user and the assistant, with their times. Other entries (titles, snapshots, progress) are
    stored in their places as results, without text, of a call that does not exist: no window shows them and
    recall does not find them. Each entry is stored whole and is loaded as it was; entries with the same
    `uuid` are one.

    Args:
        memory: the memory that stores the transcripts.

    Raises:
        InvalidInput: `memory` is not a memory.

    """

    def __init__(self, memory: Memory) -> None:
        check_provider(memory)
        self._memory = memory.aio
        # By space, with the number of erasures: a new erasure makes the summaries of the space invalid.
        self._folded: dict[str, tuple[int, dict[str, _FoldedSummary]]] = {}

    async def append(self, key: Mapping[str, object], entries: Sequence[Mapping[str, object]]) -> None:
        """Append entries, all or none; those whose `uuid` is stored already are left out.

        Raises:
            InvalidInput: the key is incomplete, or an entry is not JSON; none was stored.

        """
        chat = self._memory.chat(_chat_id(key))
        fresh = _first_of_each(map(_message, entries))
        while True:
            try:
                await chat.append(fresh)
            except Conflict:
                # An entry is stored under the same uuid with another text; the first one stays.
                stored = {message.id async for page in self._pages(_chat_id(key)) for message in page}
                fresh = [message for message in fresh if message.id not in stored]
            else:
                return

    async def load(self, key: Mapping[str, object]) -> list[Entry] | None:
        """Return the entries of a transcript, in the order they were stored; None if there are none.

        Raises:
            InvalidInput: the key is incomplete.

        """
        return [entry async for page in self._pages(_chat_id(key)) for entry in _entries(page)] or None

    async def list_sessions(self, project_key: str) -> list[Listed]:
        """Return the sessions of a project, without those of subagents."""
        return list((await self._sessions(project_key)).values())

    async def list_session_summaries(self, project_key: str) -> list[SessionSummary]:
        """Return the summaries of the sessions of a project, made by the SDK.

        Each call reads the entries that are new since the one before, so that a summary agrees with its
        transcript even with concurrent writers.

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
        self, fold: _Fold, folded: dict[str, _FoldedSummary], chat: str, listed: Listed
    ) -> SessionSummary:
        through, summary = folded.get(chat, _FoldedSummary())
        async for page in self._pages(chat, through):
            summary = fold(summary, listed, list(_entries(page)))
            through = page[-1].seq
        folded[chat] = _FoldedSummary(through, summary)
        return {**listed, "data": dict(summary["data"]) if summary else {}}

    async def delete(self, key: Mapping[str, object]) -> None:
        """Erase a transcript, those of its subagents, and what was learned from them.

        The key of a subagent erases its transcript only. This calls `Memory.erase` for each transcript, which
        rewrites the file each time; receipts without text stay. It is no error if there is nothing to erase.

        Raises:
            InvalidInput: the key is incomplete.
            Denied: a constraint was confirmed in the session, and another than the user acts.
            Unavailable: it is erased, but other readers held the file open, which still has remains.

        """
        main = _chat_id(key)
        below = {} if _is_below(key) else await self._chats_below(main)
        # Last the main one, so that a retry finds the others.
        for chat in [*(f"{main}/{rest}" for rest in below), main]:
            # There may be no such chat.
            with suppress(InvalidInput):
                await self._memory.erase(chat=chat)

    async def list_subkeys(self, key: Mapping[str, object]) -> list[str]:
        """Return the `subpath` of each subagent of a session.

        Raises:
            InvalidInput: the key is incomplete.

        """
        return [unescape(rest) for rest in await self._chats_below(_chat_id(key))]

    async def _sessions(self, project_key: str) -> dict[str, Listed]:
        """Return the sessions of a project by the ids of their chats."""
        project = _project(project_key)
        return {
            f"{project}/{rest}": {"session_id": unescape(rest), "mtime": (newest - _EPOCH) // _MILLISECOND}
            for rest, newest in (await self._chats_below(project)).items()
            if "/" not in rest
        }

    async def _pages(self, chat: str, after: int = 0) -> AsyncIterator[list[Message]]:
        """Yield the messages of a chat after a `seq`, page by page."""
        opened = self._memory.chat(chat)
        while page := await opened.history(_PAGE, after=after):
            yield page
            after = page[-1].seq

    async def _chats_below(self, above: str) -> dict[str, datetime]:
        """Return the chats below an id: the rest of their ids, with the times of their newest messages."""
        chats = await self._memory.chats(agent="", archived=None)
        return {
            chat.id.removeprefix(f"{above}/"): chat.newest
            for chat in chats
            if chat.messages and chat.id.startswith(f"{above}/")
        }


def _entries(page: Iterable[Message]) -> Iterable[Entry]:
    """Return the entries that messages were made of, without messages that others appended."""
    return (cast("Entry", message.raw) for message in page if message.meta == _ENTRY)


def _first_of_each(messages: Iterable[Message]) -> list[Message]:
    """Return the first message of each id, and all messages without an id."""
    kept: dict[object, Message] = {}
    for message in messages:
        kept.setdefault(message.id or len(kept), message)
    return list(kept.values())


def _message(entry: Mapping[str, object]) -> Message:
    """Return the message to store for an entry."""
    if not isinstance(entry, Mapping):
        raise InvalidInput(
            f"An entry of a transcript is of the type {type(entry).__name__!r}.",
            "Append dicts, as the SDK does.",
        )
    inner = _speech(entry)
    message = read_message(inner) if isinstance(inner, Mapping) else None
    return replace(
        message or Message("tool", call_id="none"), id=_id(entry), at=_time(entry), raw=entry, meta=_ENTRY
    )


def _speech(entry: Mapping[str, object]) -> object:
    """Return the message in an entry, by the rules of the importer for Claude Code; None if there is none."""
    kind, queued = entry.get("type"), entry.get("attachment")
    if kind == "attachment" and isinstance(queued, Mapping):
        is_typed = queued.get("type") == "queued_command" and queued.get("commandMode", "prompt") == "prompt"
        return {"role": "user", "content": queued.get("prompt")} if is_typed else None
    by_program = any(entry.get(mark) is True for mark in _BY_PROGRAM)
    return entry.get("message") if kind in ("user", "assistant") and not by_program else None


def _id(entry: Mapping[str, object]) -> str:
    uuid = entry.get("uuid")
    if not isinstance(uuid, str) or not uuid:
        return ""
    legible = len(uuid) <= _LONGEST_UUID and uuid.isascii() and uuid.isprintable() and uuid.strip()
    return uuid if legible else digest(uuid)


def _time(entry: Mapping[str, object]) -> datetime | None:
    try:
        at = formats.read_time(entry.get("timestamp"))
        return None if at is None else at.astimezone(UTC)
    except (InvalidInput, OverflowError):
        return None


def _chat_id(key: Mapping[str, object]) -> str:
    """Return the id of the chat of a transcript, different for every key."""
    parts = [_project(key.get("project_key")), escape(_text(key, "session_id"))]
    if _is_below(key):
        parts += map(escape, _text(key, "subpath").split("/"))
    return "/".join(parts)


def _is_below(key: Mapping[str, object]) -> bool:
    """Return whether a key names the transcript of a subagent."""
    return key.get("subpath") is not None


def _project(key: object) -> str:
    """Return the prefix of the ids of a project's chats; of a very long key, it has the hash."""
    project = escape(_text({"project_key": key}, "project_key"))
    return f"{_ROOT}/{project if len(project) <= _LONGEST_PROJECT else '%' + digest(project)}"


def _text(key: Mapping[str, object], name: str) -> str:
    value = key.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"The key of a session has no {name!r}.", "Pass a text that is not empty.")
    return value


def _fold() -> _Fold:
    try:
        return cast("_Fold", import_module("claude_agent_sdk").fold_session_summary)
    except ImportError as error:
        what = "Summaries of sessions are made by the Claude Agent SDK."
        raise MissingExtra(what, "Run: pip install claude-agent-sdk.") from error
