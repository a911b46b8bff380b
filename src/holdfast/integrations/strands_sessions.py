"""Sessions of Strands Agents in a memory: messages in the log, all else in items beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from strands.session.session_repository import SessionRepository
from strands.types.exceptions import SessionException
from strands.types.session import (
    Session,
    SessionAgent,
    SessionMessage,
    decode_bytes_values,
    encode_bytes_values,
)

from holdfast.errors import Conflict, InvalidInput
from holdfast.integrations.framework_keys import chat_id
from holdfast.integrations.opaque_items import read_message, restoring
from holdfast.port import formats
from holdfast.port.items import Items, retry_transaction
from holdfast.types import Message, Role, check_count

if TYPE_CHECKING:
    from strands.multiagent import MultiAgentBase

    from holdfast import Memory
    from holdfast.port.items import Item

_FRAMEWORK = "strands"
_SESSION, _AGENT, _AGENTS, _MULTI_AGENT, _MESSAGE = "session", "agent", "agents/", "multi-agent/", "message/"


class SessionMismatch(Conflict, SessionException):  # type: ignore[misc]
    """A part of a session is there already, or is missing; nothing was changed. Make the agent again.

    A SessionException too, as Strands' own repositories raise it.
    """


class HoldfastSessionRepository(SessionRepository):  # type: ignore[misc]
    """Store sessions of Strands Agents in the chats of a memory.

    A message of an agent is one of the chat `strands/SESSION/AGENT`, with Strands' own form of it in `raw`;
    the agent's state is an item of that chat, what a session has of graphs and swarms one of the chat
    `strands/SESSION`. The log is append-only: a message that is updated or redacted is followed by its new
    version, which takes its place in the session; `Memory.erase` removes the words of the first one. All
    methods block, each is one transaction, and no message takes the place of another.

    Args:
        memory: the memory of the sessions.

    Raises:
        InvalidInput: `memory` is not a memory, or it stores nothing.

    """

    def __init__(self, memory: Memory) -> None:
        self._table = Items(memory, _FRAMEWORK)

    # Sessions, agents, and several of them

    @retry_transaction
    def create_session(self, session: Session, **_: object) -> Session:
        """Create a session.

        Raises:
            SessionMismatch: it is there already.

        """
        id = session.session_id
        self._create(_chat(id), _SESSION, session.to_dict(), f"Session {id!r}")
        return session

    def read_session(self, session_id: str, **_: object) -> Session | None:
        """Return a session; None if there is none."""
        item = self._table.get(_SESSION, _chat(session_id))
        return None if item is None else Session.from_dict(_unpack(item))

    def delete_session(self, session_id: str, **_: object) -> None:
        """Erase a session and all that was said in it; the file is rewritten later, see `Memory.erase`.

        Raises:
            SessionMismatch: there is none.

        """
        chat = _chat(session_id)
        if self._table.get(_SESSION, chat) is None:
            raise _missing(f"Session {session_id!r}")
        agents = [item.key.removeprefix(_AGENTS) for item in self._table.scan(chat, prefix=_AGENTS)]
        # The session last, so that a call that is stopped is finished by another one.
        for target in [*(_chat(session_id, agent) for agent in agents), chat]:
            self._table.erase(target)

    @retry_transaction
    def create_agent(self, session_id: str, session_agent: SessionAgent, **_: object) -> None:
        """Store the state of an agent that is new in a session.

        Raises:
            SessionMismatch: it is not new, or there is no such session.

        """
        agent, data = session_agent.agent_id, _pack(session_agent.to_dict())
        chat, own = _chat(session_id), _chat(session_id, agent)
        with self._table.writing() as tx:
            if tx.get(_SESSION, chat) is None:
                raise _missing(f"Session {session_id!r}")
            if tx.get(_AGENT, own):
                raise _duplicate(f"Agent {agent!r} of session {session_id!r}")
            tx.put({f"{_AGENTS}{agent}": b""}, chat)
            tx.put({_AGENT: data}, own)

    def read_agent(self, session_id: str, agent_id: str, **_: object) -> SessionAgent | None:
        """Return the state of an agent; None if there is none."""
        item = self._table.get(_AGENT, _chat(session_id, agent_id))
        return None if item is None else SessionAgent.from_dict(_unpack(item))

    @retry_transaction
    def update_agent(self, session_id: str, session_agent: SessionAgent, **_: object) -> None:
        """Store the state of an agent in place of the former one.

        Raises:
            SessionMismatch: there is no such agent.

        """
        agent = session_agent.agent_id
        chat = _chat(session_id, agent)
        with self._table.writing() as tx:
            former = tx.get(_AGENT, chat)
            if former is None:
                raise _missing(f"Agent {agent!r} of session {session_id!r}")
            session_agent.created_at = str(_unpack(former)["created_at"])
            tx.put({_AGENT: _pack(session_agent.to_dict())}, chat)

    @retry_transaction
    def create_multi_agent(self, session_id: str, multi_agent: MultiAgentBase, **_: object) -> None:
        """Store the state of a graph or a swarm that is new in a session.

        Raises:
            SessionMismatch: it is not new.

        """
        what, state = f"Graph {multi_agent.id!r} of session {session_id!r}", multi_agent.serialize_state()
        self._create(_chat(session_id), f"{_MULTI_AGENT}{multi_agent.id}", state, what)

    def read_multi_agent(self, session_id: str, multi_agent_id: str, **_: object) -> dict[str, object] | None:
        """Return the state of a graph or a swarm; None if there is none."""
        item = self._table.get(f"{_MULTI_AGENT}{multi_agent_id}", _chat(session_id))
        return None if item is None else _unpack(item)

    @retry_transaction
    def update_multi_agent(self, session_id: str, multi_agent: MultiAgentBase, **_: object) -> None:
        """Store the state of a graph or a swarm in place of the former one.

        Raises:
            SessionMismatch: there is no such graph or swarm.

        """
        chat, key = _chat(session_id), f"{_MULTI_AGENT}{multi_agent.id}"
        with self._table.writing() as tx:
            if tx.get(key, chat) is None:
                raise _missing(f"Graph {multi_agent.id!r} of session {session_id!r}")
            tx.put({key: _pack(multi_agent.serialize_state())}, chat)

    def _create(self, chat: str, key: str, data: Mapping[str, object], what: str) -> None:
        try:
            self._table.replace(key, _pack(data), 0, chat)
        except Conflict as error:
            raise _duplicate(what) from error

    # Messages

    @retry_transaction
    def create_message(
        self, session_id: str, agent_id: str, session_message: SessionMessage, **_: object
    ) -> None:
        """Append a message of an agent.

        Raises:
            SessionMismatch: the agent has one of that number, or there is no such agent.
            InvalidInput: it is not JSON; nothing was stored.

        """
        chat, key = _chat(session_id, agent_id), _key(session_message.message_id)
        draft = _message(session_message)
        with self._table.writing() as tx:
            items = tx.get_many([_AGENT, key], chat)
            if _AGENT not in items:
                raise _missing(f"Agent {agent_id!r} of session {session_id!r}")
            if key in items:
                raise _duplicate(f"Message {session_message.message_id} of agent {agent_id!r}")
            _append(tx, chat, key, draft)

    def read_message(
        self, session_id: str, agent_id: str, message_id: int, **_: object
    ) -> SessionMessage | None:
        """Return a message of an agent; None if there is none, or it was erased."""
        chat = _chat(session_id, agent_id)
        with self._table.reading():
            item = self._table.get(_key(message_id), chat)
            return next(iter(_session_messages(self._table, chat, [item] if item else [])), None)

    @retry_transaction
    def update_message(
        self, session_id: str, agent_id: str, session_message: SessionMessage, **_: object
    ) -> None:
        """Append a new version of a message, which takes its place in the session.

        Raises:
            SessionMismatch: there is no such message.
            InvalidInput: it is not JSON; nothing was stored.

        """
        chat, key = _chat(session_id, agent_id), _key(session_message.message_id)
        with self._table.writing() as tx:
            entry = tx.get(key, chat)
            former = _session_messages(tx, chat, [entry] if entry else [])
            if entry is None or not former:
                raise _missing(f"Message {session_message.message_id} of agent {agent_id!r}")
            session_message.created_at = former[0].created_at
            newest, *first = _ids(entry)
            draft = replace(_message(session_message), meta={_FRAMEWORK: "replaces", "message": newest})
            beside: tuple[str, ...] = ()
            if session_message.redact_message is not None and session_message.message == former[0].message:
                # Its words are in the log already, where an erasure looks for them.
                raw = {name: value for name, value in (draft.raw or {}).items() if name != "message"}
                draft, beside = replace(draft, raw=raw), (first[0] if first else newest,)
            _append(tx, chat, key, draft, *beside)

    def list_messages(
        self, session_id: str, agent_id: str, limit: int | None = None, offset: int = 0, **_: object
    ) -> list[SessionMessage]:
        """Return messages of an agent, oldest first, from a place on, without those that were erased."""
        chat, start = _chat(session_id, agent_id), check_count(offset, "offset")
        most = None if limit is None else check_count(limit, "limit")
        with self._table.reading():
            entries = self._table.scan(chat, prefix=_MESSAGE, limit=most, offset=start)
            return _session_messages(self._table, chat, entries)


def _append(tx: Items, chat: str, key: str, draft: Message, *beside: str) -> None:
    ((_, id),) = tx.log(chat).append([draft])
    tx.put({key: json.dumps([id, *beside]).encode()}, chat)


def _session_messages(db: Items, chat: str, entries: Sequence[Item]) -> list[SessionMessage]:
    wanted = [_ids(entry) for entry in entries]
    by_id = {message.id: message for message in db.log(chat).find([id for ids in wanted for id in ids])}
    return [_session_message(*(by_id[id] for id in ids if id in by_id)) for ids in wanted if ids[0] in by_id]


def _chat(*parts: str) -> str:
    return chat_id(_FRAMEWORK, *parts)


def _key(number: int) -> str:
    return f"{_MESSAGE}{check_count(number, 'The number of a message'):016x}"


def _ids(entry: Item) -> list[str]:
    """Return the ids of a message's newest version, and of the one that has the words it replaces."""
    return cast("list[str]", json.loads(entry.data))


def _pack(data: Mapping[str, object]) -> bytes:
    try:
        return json.dumps(encode_bytes_values(data)).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"The state of an agent is not JSON: {error}.", "Store JSON in it.") from error


def _unpack(item: Item) -> dict[str, object]:
    return cast("dict[str, object]", decode_bytes_values(json.loads(item.data)))


def _missing(what: str) -> SessionMismatch:
    return SessionMismatch(f"{what} does not exist.", "Create it first, or look at the ids.")


def _duplicate(what: str) -> SessionMismatch:
    return SessionMismatch(f"{what} already exists.", "Another agent may write there: make this one again.")


def _session_message(newest: Message, *first: Message) -> SessionMessage:
    with restoring(newest, "none of Strands", "strands-agents"):
        raw = dict(newest.raw or {})
        if "message" not in raw:
            # The first version may have been erased.
            raw["message"] = (first[0].raw or {})["message"] if first else raw["redact_message"]
        return SessionMessage.from_dict(raw)


def _message(session_message: SessionMessage) -> Message:
    """Return the message to store, with Strands' own form of it in `raw`."""
    shown = session_message.to_message()
    role: Role = "assistant" if shown["role"] == "assistant" else "user"
    form = {"role": role, "content": list(_parts(shown["content"]))}
    raw = session_message.to_dict()
    return read_message(form, raw) or Message(role, "[message]", raw=raw)


def _parts(content: object) -> Iterator[Mapping[str, object]]:
    """Yield the blocks of a message as parts in the forms of OpenAI and Anthropic."""
    for block in formats.blocks_of(content):
        if isinstance(call := block.get("toolUse"), Mapping):
            id, name = call.get("toolUseId"), call.get("name")
            yield {"type": "tool_use", "id": id, "name": name, "input": call.get("input")}
        elif isinstance(result := block.get("toolResult"), Mapping):
            parts = list(_parts(result.get("content")))
            yield {"type": "tool_result", "tool_use_id": result.get("toolUseId"), "content": parts}
        elif isinstance(cited := block.get("citationsContent"), Mapping):
            yield from _parts(cited.get("content"))
        elif isinstance(guarded := block.get("guardContent"), Mapping):
            yield from _parts([guarded.get("text")])
        elif "json" in block:
            yield {"type": "text", "text": json.dumps(block["json"], ensure_ascii=False)}
        elif "text" in block:
            yield {"type": "text", "text": block["text"]}
        else:
            yield from _media(block)


def _media(block: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    """Yield media, which are named; thoughts and marks of caches are not shown."""
    for kind in ("image", "document", "audio", "video"):
        if isinstance(media := block.get(kind), Mapping):
            named = {key: media[key] for key in ("name", "format") if key in media}
            yield {"type": "image" if kind == "image" else "document", **named}
