"""Add the MCP server to the configuration of a client, without changing anything else in the text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from holdfast.errors import Conflict

NAME = "holdfast"
_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")
_BOM = "\ufeff"  # some editors on Windows begin a text with it


@dataclass(frozen=True, slots=True)
class Client:
    """The form in which a client lists its servers: a member of its configuration, with a type or without."""

    title: str
    section: str
    typed: bool


CLIENTS: dict[str, Client] = {
    "claude-code": Client("Claude Code", "mcpServers", typed=True),
    "claude-desktop": Client("Claude Desktop", "mcpServers", typed=False),
    "cursor": Client("Cursor", "mcpServers", typed=False),
    "vscode": Client("VS Code", "servers", typed=True),
}
"""The known clients, by their names in `holdfast mcp --install`."""


def entry(client: Client, command: Sequence[str], environment: Mapping[str, str]) -> dict[str, object]:
    """Return the entry by which a client starts a server: a command with arguments and environment."""
    kind = {"type": "stdio"} if client.typed else {}
    around = {"env": dict(environment)} if environment else {}
    return {**kind, "command": command[0], "args": list(command[1:]), **around}


def snippet(client: Client, server: Mapping[str, object]) -> str:
    """Return a configuration with our entry alone, to be pasted by hand."""
    return _pretty({client.section: {NAME: server}}, "  ")


def installed(text: str, client: Client, server: Mapping[str, object]) -> str:
    """Return a configuration with our entry, in place of an earlier one; "" stands for no configuration.

    Nothing else changes, not even white space.

    Raises:
        Conflict: it is not plain JSON, or not of the form of this client's.

    """
    mark = _BOM if text.startswith(_BOM) else ""
    body = text.removeprefix(_BOM)
    if not body.strip():
        return f"{mark}{snippet(client, server)}\n"
    document = _read(body)
    servers = document.get(client.section, {})
    if not isinstance(servers, dict):
        raise Conflict(
            f"The member {client.section!r} of the configuration is no object.",
            "Mend it, or add the entry by hand.",
        )
    root = _skip(body, 0)
    step = _step(body, root)
    if client.section not in document:
        edit = _with_member(body, root, client.section, {NAME: server}, step)
    else:
        edit = _with_member(body, _member(body, root, client.section).start, NAME, server, step)
    new = edit.text.replace("\n", "\r\n") if "\r\n" in body else edit.text
    return mark + body[: edit.start] + new + body[edit.end :]


def _read(text: str) -> dict[str, object]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Conflict(
            "The configuration is not plain JSON: it may have comments, which would be lost.",
            "Add the entry by hand.",
        ) from error
    if not isinstance(document, dict):
        raise Conflict("The configuration is no JSON object.", "Mend it, or add the entry by hand.")
    return document


class _Member(NamedTuple):
    """A member of an object in a text: its name, the position of the name, and the span of the value."""

    name: str
    at: int
    start: int
    end: int


def _members(text: str, at: int) -> list[_Member]:
    """Return the members of the object at a position of a JSON text."""
    members = []
    at = _skip(text, at + 1)
    while text[at] != "}":
        name, colon = _DECODER.raw_decode(text, at)
        start = _skip(text, _skip(text, colon) + 1)
        _, end = _DECODER.raw_decode(text, start)
        members.append(_Member(name, at, start, end))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return members


def _member(text: str, at: int, name: str) -> _Member:
    """Return the member of a name; of several the last, as JSON parsers do."""
    return [one for one in _members(text, at) if one.name == name][-1]


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


class _Edit(NamedTuple):
    """A change of a text: the characters from `start` to `end` become `text`."""

    start: int
    end: int
    text: str


def _with_member(text: str, at: int, name: str, value: Mapping[str, object], step: str) -> _Edit:
    """Return the edit that adds a member to the object at a position, in its layout, or replaces it."""
    members = _members(text, at)
    if name in (one.name for one in members):
        old = _member(text, at, name)
        in_lines = _own_line(text, old.at)
        new = _value(value, step, _margin(text, old.at)) if in_lines else json.dumps(value)
        return _Edit(old.start, old.end, new)
    if not members:
        outer = _margin(text, at)
        margin = outer + step
        added = f"\n{margin}{json.dumps(name)}: {_value(value, step, margin)}\n{outer}"
        return _Edit(at + 1, _skip(text, at + 1), added)
    last = members[-1]
    if _own_line(text, last.at):
        margin = _margin(text, last.at)
        return _Edit(last.end, last.end, f",\n{margin}{json.dumps(name)}: {_value(value, step, margin)}")
    return _Edit(last.end, last.end, f", {json.dumps(name)}: {json.dumps(value)}")


def _value(value: Mapping[str, object], step: str, margin: str) -> str:
    return _pretty(value, step).replace("\n", f"\n{margin}")


def _pretty(value: Mapping[str, object], step: str) -> str:
    return json.dumps(value, indent=step)


def _step(text: str, root: int) -> str:
    """Return the indent of a text, two spaces if it has none."""
    members = _members(text, root)
    return (_margin(text, members[0].at) if members and _own_line(text, members[0].at) else "") or "  "


def _own_line(text: str, at: int) -> bool:
    return not text[text.rfind("\n", 0, at) + 1 : at].strip() and "\n" in text[:at]


def _margin(text: str, at: int) -> str:
    """Return the white space at the beginning of the line of a position."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]
