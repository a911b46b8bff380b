"""Credentials masked where a text is shown: what is stored stays as it was said."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Literal, get_args

from holdfast.errors import InvalidInput
from holdfast.types import Finding, Hit, Message, Summary, ToolCall

Secrets = Literal["mask", "show"]
"""Whether credentials are masked in what is shown."""
SECRETS: tuple[Secrets, ...] = get_args(Secrets)
FLAG = "secret"  # of a message in which the guard found one when it was stored
_KEPT = 8_000  # characters of a text whose masked form is kept: a summary is shown in every prompt
_WORD = re.compile(r"[^\W_]+")
_TELLING = re.compile(r"[:=]")
_MADE = re.compile(r"[0-9A-Fa-f-]*")  # ids that programs make: UUIDs, digests, numbers
_SHORTEST = 16  # characters of a credential that nothing introduces


def is_masked(secrets: object) -> bool:
    """Return whether credentials are to be masked.

    Raises:
        InvalidInput: it is neither "mask" nor "show".

    """
    if secrets not in SECRETS:
        raise InvalidInput("`secrets` is neither 'mask' nor 'show'.", f"Use one of {', '.join(SECRETS)}.")
    return secrets == "mask"


def mask(text: str) -> str:
    """Return a text with each credential in it replaced by what it is; linear.

    >>> mask("key: AKIAQ3EGRGB2M4XPIX5T")
    'key: [redacted: AWS access key]'
    """
    return _kept(text) if len(text) <= _KEPT else _masked(text)


def _masked(text: str) -> str:
    # The rules take 150 ms to load.
    from holdfast.safety.guard import redact

    return redact(text, _find(text), _find)


_kept = lru_cache(maxsize=512)(_masked)


def _find(text: str) -> list[Finding]:
    from holdfast.safety.credentials import find_secrets
    from holdfast.safety.deobfuscate import fold

    folded = fold(text)
    secrets = find_secrets(folded.text, set(_WORD.findall(folded.text.lower())))
    return [Finding("secret", *folded.span(one.start, one.end), "high", one.what) for one in secrets]


def mask_name(name: str) -> str:
    """Return a name, a title or an id as `mask` does; most of them need no look."""
    if len(name) < _SHORTEST and not _TELLING.search(name):
        return name
    return name if _MADE.fullmatch(name) else mask(name)


def check_name_is_open(name: str, what: str) -> str:
    """Return a name that others are shown.

    Raises:
        InvalidInput: it holds a credential; the error does not repeat it.

    """
    if mask_name(name) != name:
        raise InvalidInput(
            f"{what} holds a credential.", "Use another one: it is shown wherever it is named."
        )
    return name


def mask_values(value: object, name: str = "") -> object:
    """Return JSON values with the credentials in them masked; a value is read with the `name` that it stands under.

    >>> mask_values({"host": "db", "password": "kX9!vbq2"})
    {'host': 'db', 'password': '[redacted: password]'}
    """
    if isinstance(value, Mapping):
        return {mask_name(str(key)): mask_values(item, str(key)) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [mask_values(item, name) for item in value]
    if isinstance(value, bool) or not isinstance(value, str | int):
        return value
    text = str(value)
    if not name:
        masked = mask(text)
    else:
        before = f'{name}: "'
        told = mask(f'{before}{text}"')
        masked = told[len(before) : -1] if told.startswith(before) else mask(text)
    return value if masked == text else masked


def masked_call(call: ToolCall) -> ToolCall:
    """Return a call with the credentials in its arguments masked."""
    arguments = mask_values(call.arguments)
    if arguments == call.arguments:
        return call
    return replace(call, arguments=arguments if isinstance(arguments, Mapping | str) else {})


def masked_message(message: Message) -> Message:
    """Return a message as others are shown it: credentials in its content, name, arguments and `meta` masked, no `raw`."""
    return replace(
        message,
        content=mask(message.content),
        name=mask_name(message.name) if message.name else message.name,
        calls=tuple(map(masked_call, message.calls)),
        raw=None,
        meta={key: mask_values(value, key) for key, value in message.meta.items()},
    )


def masked_summary(summary: Summary) -> Summary:
    """Return a summary with the credentials in its text masked."""
    return replace(summary, text=mask(summary.text))


def masked_hit(hit: Hit) -> Hit:
    """Return a hit of our own search with the credentials in it masked.

    Of a message, the flag of the guard says whether there is anything to look for; records hold none.
    """
    is_suspect = hit.source == "summary" or FLAG in hit.flags
    text = mask(hit.text) if is_suspect else hit.text
    name = mask_name(hit.name) if hit.name else hit.name
    return hit if text is hit.text and name is hit.name else replace(hit, text=text, name=name)


def holds_secret(message: Message) -> bool:
    """Return whether the name or a call of a message holds a credential."""
    named = message.name is not None and mask_name(message.name) != message.name
    return named or any(masked_call(call) is not call for call in message.calls)
