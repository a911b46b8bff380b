"""LangChain: a retriever that recalls from a memory, and a message history that is stored in a chat.

>>> retriever = HoldfastRetriever(memory=memory, k=5)                           # doctest: +SKIP
>>> retriever.invoke("Which race am I training for?")                           # doctest: +SKIP
>>> HoldfastChatMessageHistory(memory, "monday").add_user_message("Hello")      # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack, cast

from holdfast import Memory
from holdfast.contract import check_provider
from holdfast.errors import MissingExtra
from holdfast.integrations.hit_metadata import hit_metadata
from holdfast.integrations.off_loop import awaited, off_loop
from holdfast.integrations.opaque_items import check_type, read_message, restoring
from holdfast.integrations.session_items import SessionItems
from holdfast.port import prompts
from holdfast.port.handles import RecallOptions
from holdfast.types import Message, Role, check_count

try:
    from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.documents import Document
    from langchain_core.messages import (
        BaseMessage,
        convert_to_openai_messages,
        message_to_dict,
        messages_from_dict,
    )
    from langchain_core.retrievers import BaseRetriever
    from pydantic import Field, SkipValidation, field_validator
except ImportError as error:
    raise MissingExtra.of("langchain") from error

if TYPE_CHECKING:
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun

    from holdfast.port.items import Payload

_ROLES: dict[str, Role] = {"human": "user", "system": "system", "tool": "tool", "function": "tool"}


class HoldfastRetriever(BaseRetriever):
    """Retrieve the messages, summaries and records of a memory that answer a question, best first.

    The content of a document is the text of a hit, with credentials masked. Its metadata are JSON: `source`,
    a message as `chat#seq` or else the id of a record or summary, which is the id of the document as well;
    `type`, "message", "record" or "summary"; `score`, the probability that it answers; `at`, the time in ISO
    8601; `why`; and where they apply `chat`, `role`, `name`, `kind`, `space`, and `flags`, what the guard
    found. `degraded` says why only words were compared though the memory has an embedder.

    A query without words or emoji, which a user may type, retrieves nothing.

    `k` and the options of recall may also be passed to `invoke`, where they take precedence.

    Args:
        memory: what to recall from.
        k: the largest number of documents.
        where: a filter on metadata, see `docs/filters.md`; None for no filter.
        options: other options of `Memory.recall`, such as `sources`, `kinds`, `since` or `min_score`.

    """

    # Any provider of the contract, not only this class.
    memory: SkipValidation[Memory] = Field(exclude=True, repr=False)
    k: int = Field(default=10, ge=0)
    where: dict[str, object] | None = None
    options: dict[str, object] = Field(default_factory=dict)

    @field_validator("memory", mode="before")
    @classmethod
    def _check_provider(cls, memory: object) -> object:
        check_provider(memory)
        return memory

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun | None = None,
        k: int | None = None,
        **options: Unpack[RecallOptions],
    ) -> list[Document]:
        del run_manager
        if not prompts.is_searchable(query):
            return []
        chosen = cast("RecallOptions", {"where": self.where, **self.options, **options})
        hits = self.memory.recall(query, limit=self.k if k is None else k, **chosen)
        beside = {} if hits.degraded is None else {"degraded": hits.degraded}
        documents = ((hit, {**hit_metadata(hit), **beside}) for hit in hits)
        return [Document(hit.text, id=str(meta["source"]), metadata=meta) for hit, meta in documents]

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun | None = None,
        **options: Any,
    ) -> list[Document]:
        del run_manager
        return await off_loop(self.memory, self._get_relevant_documents, query, **options)


class HoldfastChatMessageHistory(BaseChatMessageHistory):
    """Store the history of a session in the chat of a memory whose id is `session_id`.

    Each message is one of the chat, so that recall, windows, compaction and learning work on it; LangChain's
    own form of it is stored in `raw`, so that nothing of it is lost. Messages that others append to the chat
    are not part of the history. The log is append-only: what was cleared leaves the history but stays in the
    chat, followed by a message that records it; `Memory.erase` removes it. All methods are safe for
    concurrent tasks, threads and processes.

    Args:
        memory: the memory of the chat.
        session_id: the id of the chat.
        limit: the number of newest messages that are read; None for all.

    Raises:
        InvalidInput: `memory` is not a memory, the limit is negative, or the id is blank, longer than 512
            bytes in UTF-8, or has control characters.

    """

    def __init__(self, memory: Memory, session_id: str, *, limit: int | None = None) -> None:
        check_provider(memory)
        self._limit = None if limit is None else check_count(limit, "limit")
        self._memory = memory
        self._items = SessionItems(memory, session_id, "langchain")
        self.session_id = session_id

    # LangChain declares an attribute, but its own histories that store have a property as well.
    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """The newest messages, oldest first.

        Raises:
            Damaged: a stored message is not one of LangChain any more.

        """
        return self._items.read(_langchain_message, self._limit)

    async def aget_messages(self) -> list[BaseMessage]:
        """Return the newest messages, oldest first."""
        return await off_loop(self._memory, lambda: self.messages)

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Append messages, all or none.

        Raises:
            InvalidInput: one is not a message, or holds what is not JSON, such as an object as the artifact
                of a tool; none was stored.

        """
        self._items.append([_message(message) for message in messages])

    aadd_messages = awaited(add_messages)

    def clear(self) -> None:
        """Remove all messages from the history."""
        self._items.clear()

    aclear = awaited(clear)


def _message(message: object) -> Message:
    """Return the message to store, with LangChain's own form of it in `raw`."""
    todo = "Add LangChain's messages, such as HumanMessage."
    given = check_type(message, BaseMessage, "A message of the history", todo)
    return replace(_readable(given), raw=message_to_dict(given))


def _readable(message: BaseMessage) -> Message:
    try:
        form: object = convert_to_openai_messages(message)
    except (AttributeError, KeyError, TypeError, ValueError):
        # It has no form of OpenAI's, or parts that LangChain does not know.
        form = None
    draft = read_message(form) if isinstance(form, Mapping) else None
    role = _ROLES.get(message.type, "assistant")
    return draft or Message(role, message.text.strip() or f"[{message.type}]")


def _langchain_message(message: Payload) -> BaseMessage:
    with restoring(message, "none of LangChain", "langchain-core"):
        # Only messages with `raw` are items.
        return messages_from_dict([dict(message.raw or {})])[0]
