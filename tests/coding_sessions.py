"""Uses of tools as calls and as written into messages, and the real sessions in which there are both."""

from __future__ import annotations

from holdfast import Message, ToolCall


def called(name: str, **arguments: object) -> Message:
    return Message("assistant", calls=(ToolCall("c1", name, arguments),))


def rendered(kind: str, name: str, head: str, result: str = "done") -> Message:
    content = (
        f'<tool-use data-tool-type="{kind}" data-tool-name="{name}"><details>\n'
        f"<summary>Tool use: **{name}**</summary>\n"
        f"{head}\n\n```text\n{result}\n```\n</details></tool-use>"
    )
    return Message("assistant", content)
