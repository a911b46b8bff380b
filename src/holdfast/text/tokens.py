"""What a text costs a model: an estimate that is made once, when a message is written."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.text.media import has_media, media_tokens

if TYPE_CHECKING:
    from holdfast.types import Message

CountTokens = Callable[[str], int]
"""Count the tokens of a text; give your model's tokenizer to `Memory(count_tokens=…)` to replace the estimate."""

MESSAGE_OVERHEAD = 4  # role, delimiters and, where there is one, the name
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_CJK = re.compile(
    "[\u1100-\u11ff\u2e80-\u9fff\ua000-\ua4cf\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef]"
)


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of `text`, rounded up.

    0.25 for an ASCII character, 1.5 for a CJK one, 2 above U+FFFF (the weights of lossless-claw, which a byte or
    UTF-16 rule undercounts up to six times), 0.5 for all others, such as Cyrillic or accented letters. Linear.
    """
    if text.isascii():
        return math.ceil(len(text) * 0.25)
    ascii_count = len(text.encode("ascii", "ignore"))
    astral, cjk = len(_ASTRAL.findall(text)), len(_CJK.findall(text))
    others = len(text) - ascii_count - astral - cjk
    return math.ceil(ascii_count * 0.25 + cjk * 1.5 + astral * 2 + others * 0.5)


def message_tokens(message: Message, count: CountTokens = estimate_tokens, *, images: bool = True) -> int:
    """Count a message as a model is billed for it: its text, its tool calls with their arguments, and an overhead.

    Images, files and sound are estimated (see `holdfast.text.media`), unless they are left out.
    """
    total = MESSAGE_OVERHEAD + count(message.content)
    if images and has_media(message.raw):
        total += media_tokens(message.raw, count)
    for call in message.calls:
        arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
        total += MESSAGE_OVERHEAD + count(call.name) + count(arguments)
    return total
