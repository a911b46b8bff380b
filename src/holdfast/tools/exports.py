"""Tools in the forms of model providers, and as plain JSON schema.

With a strict schema, a model can only pass valid arguments. OpenAI's requires every argument, so an optional
one can be null; every tool accepts null for its default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, cast

Schema = dict[str, object]


class DescribedTool(Protocol):
    """The description of a tool for a model; `Tool` and `AsyncTool` have it."""

    @property
    def name(self) -> str:
        """The name by which a model calls it."""

    @property
    def description(self) -> str:
        """What it does."""

    @property
    def parameters(self) -> Mapping[str, object]:
        """The JSON schema of its arguments."""


def openai_chat(tools: Iterable[DescribedTool], *, strict: bool = True) -> list[Schema]:
    """Return tools for OpenAI's chat completions, and for services with the same protocol."""
    return [{"type": "function", "function": _function(tool, strict=strict)} for tool in tools]


def openai_responses(tools: Iterable[DescribedTool], *, strict: bool = True) -> list[Schema]:
    """Return tools for OpenAI's responses."""
    return [{"type": "function", **_function(tool, strict=strict)} for tool in tools]


def _function(tool: DescribedTool, *, strict: bool) -> Schema:
    properties = cast("Mapping[str, Mapping[str, object]]", tool.parameters["properties"])
    # A parameter that takes an object with any keys cannot be strict.
    strict = strict and all(field["type"] != "object" for field in properties.values())
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": strict_schema(tool.parameters) if strict else dict(tool.parameters),
        "strict": strict,
    }


def anthropic(tools: Iterable[DescribedTool]) -> list[Schema]:
    """Return tools for Anthropic's messages."""
    return [
        {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}
        for tool in tools
    ]


def json_schema(tools: Iterable[DescribedTool]) -> list[Schema]:
    """Return tools as plain JSON schema, each with its name as title."""
    return [{"title": tool.name, "description": tool.description, **tool.parameters} for tool in tools]


def strict_schema(schema: Mapping[str, object]) -> Schema:
    """Return a schema with every property required, where optional ones can be null.

    >>> strict_schema({"type": "object", "properties": {"limit": {"type": "integer"}}})["properties"]
    {'limit': {'type': ['integer', 'null']}}
    """
    required = cast("list[str]", schema.get("required", []))
    properties = cast("Mapping[str, Mapping[str, object]]", schema.get("properties", {}))
    return {
        "type": "object",
        "properties": {name: _strict(field, required=name in required) for name, field in properties.items()},
        "required": list(properties),
        "additionalProperties": False,
    }


def _strict(schema: Mapping[str, object], *, required: bool) -> Schema:
    """Return a schema without bounds of numbers, which strict schemas cannot have; the call checks them."""
    strict = {name: value for name, value in schema.items() if name not in ("minimum", "maximum")}
    if not required:
        strict["type"] = [schema["type"], "null"]
        if "enum" in schema:
            strict["enum"] = [*cast("list[object]", schema["enum"]), None]
    return strict
