"""The tokens of a text: an estimate, or the count of a tokenizer."""

from __future__ import annotations

import math
from collections.abc import Callable

from holdfast.errors import InvalidInput, MissingExtra, Unavailable, shown
from holdfast.text.late_pattern import late_pattern
from holdfast.types.checks import check_count

CountTokens = Callable[[str], int]
"""A function from text to tokens; pass your model's tokenizer as `Memory(count_tokens=…)`."""
CountBy = CountTokens | str
"""A `CountTokens`, or the name of one: "openai:gpt-5-mini" or "tiktoken:o200k_base"."""

_NAMES = "a name such as 'openai:gpt-5-mini' or 'tiktoken:o200k_base'"
# Characters that are counted at once: on a run of a million spaces tiktoken panics, on one of letters it was
# quadratic once. Two pieces count one token more than the whole at most.
_PIECE = 10_000
MESSAGE_OVERHEAD = 4  # role, delimiters and, where there is one, the name
_ASTRAL = late_pattern("[\U00010000-\U0010ffff]")
_CJK = late_pattern(
    "[\u1100-\u11ff\u2e80-\u9fff\ua000-\ua4cf\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    "\ufe30-\ufe4f\uff00-\uffef]"
)


def estimate_tokens(text: str) -> int:
    """Return an estimate of the tokens of `text`, rounded up.

    0.25 for an ASCII character, 1.5 for a CJK one, 2 above U+FFFF (the weights of lossless-claw, which a byte
    or UTF-16 rule undercounts up to six times), 0.5 for all others, such as Cyrillic or accented letters.
    Linear.
    """
    if text.isascii():
        return math.ceil(len(text) * 0.25)
    ascii_count = len(text.encode("ascii", "ignore"))
    astral, cjk = len(_ASTRAL.findall(text)), len(_CJK.findall(text))
    others = len(text) - ascii_count - astral - cjk
    return math.ceil(ascii_count * 0.25 + cjk * 1.5 + astral * 2 + others * 0.5)


def counter(count: CountBy) -> CountTokens:
    """Return the function that counts tokens: `count` itself, or the tokenizer of that name.

    A tokenizer has a table. tiktoken reads it from the folder that $TIKTOKEN_CACHE_DIR names, or the one for
    temporary files; a table that is not there is downloaded, here and never later.

    Raises:
        InvalidInput: `count` is not a function, or an unknown name.
        MissingExtra: a name was passed, and tiktoken is not installed.
        Unavailable: the table is missing, and cannot be downloaded.

    """
    if not isinstance(count, str):
        if not callable(count):
            raise InvalidInput(
                f"`count_tokens` is {shown(count)}.", f"Pass a function from text to a number, or {_NAMES}."
            )
        return count if count is estimate_tokens else lambda text: check_count(count(text), "count_tokens")
    encode = _tiktoken_encoder(count)
    return lambda text: sum(len(encode(text[at : at + _PIECE])) for at in range(0, len(text), _PIECE))


def _tiktoken_encoder(count: str) -> Callable[[str], list[int]]:
    by, _, name = count.partition(":")
    if by not in ("openai", "tiktoken") or not name:
        raise InvalidInput(f"Unknown tokenizer {shown(count)}.", f"Pass {_NAMES}, or a function.")
    try:
        # An extra, loaded when it is used.
        import tiktoken
    except ImportError as error:
        raise MissingExtra.of("tiktoken") from error
    if by == "openai":
        try:
            name = tiktoken.encoding_name_for_model(name)
        except KeyError as error:
            raise InvalidInput(
                f"tiktoken knows no model {shown(name)}.",
                "Upgrade it, or name the encoding, as 'tiktoken:o200k_base'.",
            ) from error
    known = sorted(tiktoken.list_encoding_names())
    if name not in known:
        raise InvalidInput(f"tiktoken knows no encoding {shown(name)}.", f"Use one of {', '.join(known)}.")
    try:
        # Reads as text what looks like a special token.
        return tiktoken.get_encoding(name).encode_ordinary
    except (OSError, ValueError) as error:  # of requests as well
        raise Unavailable(
            f"The table of the encoding {shown(name)} is missing, and cannot be downloaded.",
            "Connect to the network once, or copy the file of another machine into the folder that "
            "$TIKTOKEN_CACHE_DIR names.",
        ) from error
