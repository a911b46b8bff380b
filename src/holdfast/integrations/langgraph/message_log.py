"""Messages of LangChain as messages of a chat: each once, with its later versions and its removal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_core.messages import BaseMessage, ChatMessage, ToolMessage

from holdfast.errors import InvalidInput
from holdfast.integrations.framework_keys import digest
from holdfast.integrations.opaque_items import read_message
from holdfast.port import formats
from holdfast.port.texts import clean
from holdfast.types import ROLES, Message, Role, ToolCall, check_name
from holdfast.types.references import write_reference

if TYPE_CHECKING:
    from langchain_core.messages import ToolCall as LangChainCall

    from holdfast.port.items import Items

# The key in `meta` of messages of the log.
_MARK = "langgraph"
_PAGE = 256  # messages copied at once
# Parts of the content that repeat the calls of a message.
_CALLS = {"tool_use", "tool_call", "function_call", "server_tool_use"}
_ROLES: dict[str, Role] = {"ai": "assistant", "system": "system", "tool": "tool", "function": "tool"}


class MessageLog:
    """The chat of a thread, in a transaction."""

    def __init__(self, tx: Items, chat: str) -> None:
        self._tx, self._log, self._chat = tx, tx.log(chat), chat

    def add(self, messages: Iterable[tuple[str, BaseMessage]]) -> None:
        """Append messages under their ids, or as later versions, unless the chat has the same words there."""
        drafts = [message for id, source in messages if (message := log_message(id, source))]
        versions = [_version(draft) for draft in drafts]
        ids = [draft.id for draft in (*drafts, *versions)]
        there = {message.id: message for message in self._log.find(ids)}
        fresh: dict[str, Message] = {}
        for draft, version in zip(drafts, versions, strict=True):
            first = there.get(draft.id) or fresh.get(draft.id)
            if first is None:
                fresh[draft.id] = draft
            elif _content_key(first) != _content_key(draft) and version.id not in there:
                fresh[version.id] = version
        self._log.append(list(fresh.values()))

    def remove(self, checkpoint: str, ids: Sequence[str]) -> None:
        """Append a tombstone for messages that a checkpoint does not have any more."""
        there = sorted(self._log.find(ids), key=lambda message: message.seq)
        if not there:
            return
        names = [write_reference(self._chat, message.seq) for message in (there[0], there[-1])]
        text = f"[message {names[0]} was removed]"
        if len(there) > 1:
            text = f"[{len(there)} messages from {names[0]} to {names[1]} were removed]"
        meta = {_MARK: "removed", "messages": [message.id for message in there]}
        tombstone = Message("system", text, id=f"removed-{digest(f'{checkpoint} {ids}')}", meta=meta)
        if not self._log.find([tombstone.id]):
            self._log.append([tombstone])

    def copy(self, source: str) -> None:
        """Append all messages of another chat."""
        after = 0
        while page := self._tx.log(source).read(_PAGE, after=after):
            self._log.append([replace(message, seq=0) for message in page])
            after = page[-1].seq


def log_message(id: str, message: BaseMessage) -> Message | None:
    """Return the words and calls of a message as a message of the log; None if it has neither."""
    read = read_message({"role": _role(message), "content": _content(message)})
    text = read.content if read else clean(str(message.text))
    calls = tuple(_call(call) for call in getattr(message, "tool_calls", ()))
    if not text.strip() and not calls:
        return None
    name = clean(message.name).strip() if message.name else None
    call_id = clean(message.tool_call_id) if isinstance(message, ToolMessage) else None
    draft = Message(_role(message), text, id=id, calls=calls, call_id=call_id)
    try:
        return formats.ready(replace(draft, name=name or None))
    except InvalidInput:
        # Calls or a name that the log does not take; the message itself is stored whole beside it.
        return formats.ready(replace(draft, content=text or "[calls of tools]", calls=(), call_id=None))


def log_id(identity: str) -> str:
    """Return the id of a message in the log: its own, or a hash of one that cannot be an id."""
    try:
        return check_name(identity, "The id of a message")
    except InvalidInput:
        return digest(identity)


def _version(draft: Message) -> Message:
    """Return a message as a later version of the stored message with its id."""
    meta = {_MARK: "version", "message": draft.id}
    return replace(draft, id=f"{digest(draft.id)[:32]}-{digest(repr(_content_key(draft)))[:32]}", meta=meta)


def _content_key(message: Message) -> tuple[object, ...]:
    calls = json.dumps([(call.id, call.name, call.arguments) for call in message.calls], sort_keys=True)
    return message.role, message.name, message.content, message.call_id, calls


def _role(message: BaseMessage) -> Role:
    if isinstance(message, ChatMessage) and message.role in ROLES:
        return message.role
    return _ROLES.get(message.type.removesuffix("MessageChunk").lower(), "user")


def _content(message: BaseMessage) -> object:
    if isinstance(message.content, str):
        return message.content
    parts = message.content
    return [part for part in parts if not (isinstance(part, Mapping) and part.get("type") in _CALLS)]


def _call(call: LangChainCall) -> ToolCall:
    return ToolCall(clean(call["id"] or ""), clean(call["name"]), call["args"])
