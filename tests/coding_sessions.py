"""Uses of tools as calls and as written into messages, and the real sessions in which there are both."""

from __future__ import annotations

from pathlib import Path

from holdfast import Message, ToolCall
from holdfast_cli.formats.import_items import ImportedMessage
from holdfast_cli.formats.sources import SourceFile, sources


def called(name: str, **arguments: object) -> Message:
    return Message("assistant", calls=(ToolCall("c1", name, arguments),))


def rendered(kind: str, name: str, head: str, result: str = "done") -> Message:
    content = (
        f'<tool-use data-tool-type="{kind}" data-tool-name="{name}"><details>\n'
        f"<summary>Tool use: **{name}**</summary>\n"
        f"{head}\n\n```text\n{result}\n```\n</details></tool-use>"
    )
    return Message("assistant", content)


def read_sessions(shared_data: Path) -> dict[str, list[Message]]:
    """Read the coding sessions as the importers do, but store nothing: no message has flags."""
    read: dict[str, list[Message]] = {}
    for source in sources(shared_data / "agent_sessions"):
        for found in (
            source.read() if isinstance(source, SourceFile) else ()
        ):  # there are questions beside them
            if isinstance(found, ImportedMessage):
                read.setdefault(found.chat.id, []).append(found.message)
    assert len(read) >= 9
    return read
