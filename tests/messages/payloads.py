"""Parts of payloads: tool calls and their results."""

from __future__ import annotations


def function(arguments: object, **fields: object) -> dict[str, object]:
    return {"id": "c1", "type": "function", "function": {"name": "find", "arguments": arguments}, **fields}


def result(call: object, said: object) -> dict[str, object]:
    return {"type": "tool_result", "tool_use_id": call, "content": said}
