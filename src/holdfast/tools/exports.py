"""Tools in the forms that model providers take, and as plain JSON schema.

A strict form promises that a model passes nothing else than the schema says. OpenAI's wants every argument to
be required, so that one that may be left out is null instead; a tool takes null for its default, whoever
passes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, cast

Schema = dict[str, object]


class DescribedTool(Protocol):
    """The description of a tool for a model, of one that is awaited as well."""

    @property
    def name(self) -> str:
        """The name that a model calls it by."""

    @property
    def description(self) -> str:
        """What it does."""

    @property
    def parameters(self) -> Mapping[str, object]:
        """The JSON schema of its arguments."""


def openai_chat(tools: Iterable[DescribedTool], *, strict: bool = True) -> list[Schema]:
    """Return tools for OpenAI's chat completions, and for the many that speak its protocol."""
    return [{"type": "function", "function": _function(tool, strict=strict)} for tool in tools]


def openai_responses(tools: Iterable[DescribedTool], *, strict: bool = True) -> list[Schema]:
    """Return tools for OpenAI's responses."""
    return [{"type": "function", **_function(tool, strict=strict)} for tool in tools]


def _function(tool: DescribedTool, *, strict: bool) -> Schema:
    properties = cast("Mapping[str, Mapping[str, object]]", tool.parameters["properties"])
    # One that takes an object of any names cannot be strict.
    strict = strict and all(one["type"] != "object" for one in properties.values())
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
    """Return the schema of an object with every property required, and null for one that is left out.

    >>> strict_schema({"type": "object", "properties": {"limit": {"type": "integer"}}})["properties"]
    {'limit': {'type': ['integer', 'null']}}
    """
    required = cast("list[str]", schema.get("required", []))
    properties = cast("Mapping[str, Mapping[str, object]]", schema.get("properties", {}))
    return {
        "type": "object",
        "properties": {
            name: _unbounded(one) if name in required else _nullable(_unbounded(one))
            for name, one in properties.items()
        },
        "required": list(properties),
        "additionalProperties": False,
    }


def _unbounded(schema: Mapping[str, object]) -> Schema:
    """Leave out the bounds of numbers, which not every strict model knows; a call beyond them fails."""
    return {name: value for name, value in schema.items() if name not in ("minimum", "maximum")}


def _nullable(schema: Mapping[str, object]) -> Schema:
    nullable = {**schema, "type": [schema["type"], "null"]}
    if "enum" in schema:
        nullable["enum"] = [*cast("list[object]", schema["enum"]), None]
    return nullable
