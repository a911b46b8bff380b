"""The tokens of a message."""

from __future__ import annotations

import json

from holdfast.messages.media import has_media, media_tokens
from holdfast.text.tokens import MESSAGE_OVERHEAD, CountTokens, estimate_tokens
from holdfast.types import Message


def message_tokens(message: Message, count: CountTokens = estimate_tokens, *, images: bool = True) -> int:
    """Return the tokens of a message: its text, its tool calls with their arguments, and an overhead.

    Images, files and sound are estimated (see `holdfast.messages.media`), unless `images` is False.
    """
    total = MESSAGE_OVERHEAD + count(message.content)
    if images and has_media(message.raw):
        total += media_tokens(message.raw, count)
    for call in message.calls:
        arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
        total += MESSAGE_OVERHEAD + count(call.name) + count(arguments)
    return total
