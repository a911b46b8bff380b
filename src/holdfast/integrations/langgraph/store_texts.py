"""The texts by which an item is found, from the paths of its fields."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from langgraph.store.base import get_text_at_path

from holdfast.errors import InvalidInput, shown

WHOLE = "$"


def check_fields(fields: object) -> list[str]:
    """Return the paths of fields; raise InvalidInput if they are none."""
    if isinstance(fields, str):
        fields = [fields]
    if not isinstance(fields, list | tuple) or not all(isinstance(path, str) for path in fields):
        raise InvalidInput(f"The fields {shown(fields)} are not a list of paths.", "Pass a list of text.")
    return list(fields)


def texts_of(value: Mapping[str, object], fields: Sequence[str]) -> list[str]:
    """Return the texts at some paths, as LangGraph's own stores embed them: objects and lists as JSON."""
    return [text for field in fields for text in get_text_at_path(value, field)]


def words_of(value: Mapping[str, object], fields: Sequence[str]) -> Iterator[str]:
    """Return the texts at some paths for a search by words: of objects and lists the values alone."""
    for text in texts_of(value, fields):
        if text[:1] in ("{", "["):
            # A text of the value may begin like JSON.
            with suppress(ValueError, RecursionError):
                yield from _leaves(json.loads(text))
                continue
        yield text


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _leaves(inner)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
