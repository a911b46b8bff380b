"""The knowledge and recall blocks for a conversation that a framework itself shows its model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple, cast

from holdfast.port import prompts

if TYPE_CHECKING:
    from holdfast import Memory
    from holdfast.port.handles import RecallOptions
    from holdfast.types import Message


class KnownAndRecalled(NamedTuple):
    """The knowledge block, and the recall block; "" where there is nothing to show."""

    known: str
    recalled: str


def known_and_recalled(
    memory: Memory,
    chat_id: str,
    said: Sequence[Message],
    max_tokens: int,
    options: Mapping[str, object],
    *,
    known: bool = True,
) -> KnownAndRecalled:
    """Return the knowledge block, and the recall block for the newest message of the user.

    A message without words, such as a lone emoji, recalls nothing. What the conversation, or the knowledge,
    shows already is not recalled and takes none of the places.

    Args:
        memory: what to recall from.
        chat_id: the chat of the conversation.
        said: the messages that the model sees anyway, oldest first.
        max_tokens: the tokens of what is recalled.
        options: options of `Memory.recall`.
        known: whether to show what is known.

    """
    chat = memory.chat(chat_id)
    query = next((message.content for message in reversed(said) if message.role == "user"), "")
    system = prompts.known(chat) if known else ""
    if not prompts.has_words(query):
        return KnownAndRecalled(system, "")
    chosen = dict(options)
    limit = cast("int", chosen.pop("limit", prompts.recall_limit(max_tokens)))
    there = {message.content for message in said}
    hits = memory.recall(query, limit=limit + len(there), **cast("RecallOptions", chosen))
    fresh = [hit for hit in hits if hit.text not in there and escape(hit.text, quote=False) not in system]
    return KnownAndRecalled(system, prompts.recall_block(memory, chat.id, fresh[:limit], max_tokens).text)
