"""Tools in the forms that model providers take, and as plain JSON schema.

A strict form promises that a model passes nothing else than the schema says. OpenAI's wants every argument to be
required, so that one that may be left out is null instead; a tool takes null for its default, whoever passes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, cast

Schema = dict[str, object]


class Described(Protocol):
    """A tool, or one that is awaited: what a model is told of it."""

    @property
    def name(self) -> str:
        """What it is called by."""

    @property
    def description(self) -> str:
        """What it does."""

    @property
    def parameters(self) -> Mapping[str, object]:
        """The JSON schema of its arguments."""


def openai_chat(tools: Iterable[Described], *, strict: bool = True) -> list[Schema]:
    """Write tools for OpenAI's chat completions, and for the many that speak its protocol."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": _parameters(tool, strict=strict),
                "strict": _is_strict(tool, strict=strict),
            },
        }
        for tool in tools
    ]


def openai_responses(tools: Iterable[Described], *, strict: bool = True) -> list[Schema]:
    """Write tools for OpenAI's responses."""
    return [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": _parameters(tool, strict=strict),
            "strict": _is_strict(tool, strict=strict),
        }
        for tool in tools
    ]


def anthropic(tools: Iterable[Described]) -> list[Schema]:
    """Write tools for Anthropic's messages."""
    return [
        {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}
        for tool in tools
    ]


def json_schema(tools: Iterable[Described]) -> list[Schema]:
    """Write tools as plain JSON schema, each with its name as title."""
    return [{"title": tool.name, "description": tool.description, **tool.parameters} for tool in tools]


def strict_schema(schema: Mapping[str, object]) -> Schema:
    """Write the schema of an object so that every property is required, and null stands for one that is left out.

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
    """Leave out the bounds of numbers, which not every strict model knows; a call beyond them is told what they are."""
    return {name: value for name, value in schema.items() if name not in ("minimum", "maximum")}


def _nullable(schema: Mapping[str, object]) -> Schema:
    nullable = {**schema, "type": [schema["type"], "null"]}
    if "enum" in schema:
        nullable["enum"] = [*cast("list[object]", schema["enum"]), None]
    return nullable


def _is_strict(tool: Described, *, strict: bool) -> bool:
    """Say whether a tool can be strict: not one that takes an object of any names."""
    properties = cast("Mapping[str, Mapping[str, object]]", tool.parameters["properties"])
    return strict and all(one["type"] != "object" for one in properties.values())


def _parameters(tool: Described, *, strict: bool) -> Schema:
    return strict_schema(tool.parameters) if _is_strict(tool, strict=strict) else dict(tool.parameters)
