"""What a memory has to say beside a conversation that a framework shows its model itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple, cast

from holdfast.prompt.recall_block import fit, hit_limit
from holdfast.prompt.window import LastN, Lossless, Policy, at_budget, unshortened
from holdfast.runtime import runtime_of
from holdfast.search.query import has_words
from holdfast.text.tokens import estimate_tokens

if TYPE_CHECKING:
    from holdfast import Chat, Memory
    from holdfast.records.options import RecallOptions
    from holdfast.types import Message

_NO_MESSAGES = LastN(0)


def unshortened_policy(handle: Memory | Chat, budget: int | None) -> Policy:
    """Return the policy of a memory at a budget, with every message as it is."""
    runtime = runtime_of(handle)
    return unshortened(at_budget(runtime.policy if runtime else Lossless(), budget))


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
    """Return what is known, and what is recalled for the newest message of the user, framed as data.

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
    query = next((one.content for one in reversed(said) if one.role == "user"), "")
    system = chat.prompt(policy=_NO_MESSAGES).system if known else ""
    if not has_words(query):
        return KnownAndRecalled(system, "")
    chosen = dict(options)
    limit = cast("int", chosen.pop("limit", hit_limit(None, max_tokens)))
    there = {one.content for one in said}
    hits = memory.recall(query, limit=limit + len(there), **cast("RecallOptions", chosen))
    fresh = [hit for hit in hits if hit.text not in there and escape(hit.text, quote=False) not in system]
    runtime = runtime_of(memory)
    count = estimate_tokens if runtime is None else runtime.count_tokens
    return KnownAndRecalled(system, fit(fresh[:limit], (memory.scope.space, chat.id), max_tokens, count).text)
