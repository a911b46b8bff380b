"""Tools in the forms of model providers: by their rules, with schemas that a validator accepts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import cast

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it comes without types

from holdfast import Memory, Tool
from holdfast.tools.exports import anthropic, json_schema, openai_responses, strict_schema
from holdfast.tools.presets import compartment_tools, fact_tool, observation_tools, provider_tool

Schema = Mapping[str, object]


@pytest.fixture(scope="module")
def memory() -> Iterator[Memory]:
    with Memory(":memory:", user="ada") as opened:
        yield opened


def every(memory: Memory) -> list[Tool]:
    """Make all tools that there are."""
    chat = memory.chat("monday")
    return [
        *memory.tools(chat),
        *memory.tools(chat, style="single"),
        *memory.tools(chat, read_only=True),
        *observation_tools(memory, chat),
        provider_tool(memory, chat),
        *compartment_tools(memory, chat),
        fact_tool(memory, chat),
    ]


def against_strict(schema: Schema) -> list[str]:
    """List what in a schema breaks the rules of OpenAI's strict mode."""
    properties = cast("Mapping[str, Schema]", schema.get("properties", {}))
    broken = []
    if schema.get("type") != "object":
        broken.append("the root is no object")
    if schema.get("additionalProperties") is not False:
        broken.append("others are allowed")
    if schema.get("required") != list(properties):
        broken.append("not all are required")
    for name, one in properties.items():
        types = one["type"] if isinstance(one["type"], list) else [one["type"]]
        if not set(types) <= {"string", "integer", "boolean", "array", "null"}:
            broken.append(f"{name} is of type {types}")
        if "array" in types and one.get("items") != {"type": "string"}:
            broken.append(f"{name} does not say of what")
        if "null" in types and "enum" in one and None not in cast("list[object]", one["enum"]):
            broken.append(f"{name} cannot be null")
        if unknown := set(one) - {"type", "items", "enum", "description"}:
            broken.append(f"{name} has {unknown}")
    return broken


def test_what_is_strict_keeps_to_the_rules(memory: Memory) -> None:
    written = openai_responses(every(memory))
    # It takes an object of any names.
    (loose,) = (one for one in written if not one["strict"])
    assert loose["name"] == "save_memory"
    assert cast("Schema", loose["parameters"])["required"] == ["compartment", "content"]
    for one in written:
        if one is not loose:
            assert against_strict(cast("Schema", one["parameters"])) == [], one["name"]
    (recall,) = openai_responses(memory.tools(allow=["recall"]), strict=False)
    assert (recall["strict"], cast("Schema", recall["parameters"])["required"]) == (False, ["query"])


def test_all_schemas_are_valid(memory: Memory) -> None:
    tools = every(memory)
    plain = json_schema(tools)
    for one, other, tool in zip(plain, anthropic(tools), tools, strict=True):
        Draft202012Validator.check_schema(dict(one))
        Draft202012Validator.check_schema(strict_schema(tool.parameters))
        assert one["title"] == other["name"] == tool.name
        assert other["input_schema"] == dict(tool.parameters)
        assert set(other) == {"name", "description", "input_schema"}
        assert json.loads(json.dumps(one)) == one


def test_what_a_schema_allows_is_taken(memory: Memory) -> None:
    (recall,) = memory.tools("monday", allow=["recall"])
    strict = Draft202012Validator(strict_schema(recall.parameters))
    optional = ("limit", "kind", "since", "until", "where", "cursor")
    full = {"query": "x", **dict.fromkeys(optional)}
    assert strict.is_valid(full)
    assert recall(full).ok
    assert not strict.is_valid({"query": "x"})
    plain = Draft202012Validator(dict(recall.parameters))
    assert plain.is_valid({"query": "x", "limit": 5.0})
    for wrong in ({}, {"query": 1}, {"query": "x", "how": 1}, {"query": "x", "limit": "5"}):
        assert not plain.is_valid(wrong)
        assert not recall(wrong).ok
