"""Tools in tests: found by their names, their schemas and results read."""

from __future__ import annotations

import json

from holdfast.tools.tool import Tool, ToolResult


def named(tools: list[Tool]) -> dict[str, Tool]:
    """Give tools by their names."""
    return {tool.name: tool for tool in tools}


def properties(tool: Tool) -> dict[str, dict[str, object]]:
    """Give the schemas of the arguments of a tool."""
    found = tool.parameters["properties"]
    assert isinstance(found, dict)
    return found


def listed(found: ToolResult, name: str) -> list[dict[str, object]]:
    """Give a list of a result that is right."""
    assert found.ok, found.text
    value = found.data[name]
    assert isinstance(value, list)
    return value


def error(found: ToolResult) -> str:
    """Give what a failed result says, after a look at its form."""
    assert not found.ok
    assert json.loads(found.text) == found.data
    assert set(found.data) == {"error", "todo"}
    return f"{found.data['error']} {found.data['todo']}"
