"""The entry by which a client starts our MCP server, in JSON and, for Codex, in TOML; and whole files."""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from holdfast.errors import Conflict
from holdfast_cli.hooks.json_text import JsonText

NAME = "holdfast"
_BEGIN, _END = f"# >>> {NAME}", f"# <<< {NAME}"
_BLOCK = re.compile(rf"^{_BEGIN}\b[^\n]*+\n(?:(?!{_END})[^\n]*+\n)*+{_END}[^\n]*+(?:\n|\Z)", re.MULTILINE)


def is_our_server(server: object) -> bool:
    """Return whether an entry starts our server, by whatever Python."""
    if not isinstance(server, dict):
        return False
    words = [server.get("command"), *(server["args"] if isinstance(server.get("args"), list) else ())]
    return "mcp" in words and any(
        isinstance(word, str) and re.fullmatch(r"(?:.*[/\\])?holdfast(?:\.exe)?", word) for word in words
    )


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """Our server in a configuration in JSON, below a path of names."""

    section: tuple[str, ...]

    def snippet(self, content: Mapping[str, object]) -> str:
        """Return a configuration with our entry alone."""
        return f"{JsonText('{}').put(self.section, content).text}\n"

    def find(self, text: str) -> dict[str, object]:
        """Return our entry in a configuration, by its name.

        Raises:
            Conflict: it is no JSON, or not of the form of this client's.

        """
        value = JsonText(text).find([*self.section, NAME]) if text.strip() else None
        return {NAME: value.plain} if value is not None and is_our_server(value.plain) else {}

    def add(self, text: str, content: Mapping[str, object]) -> str:
        """Return a configuration with our entry, in place of an earlier one; "" stands for none.

        Raises:
            Conflict: it is no JSON, or not of the form of this client's.

        """
        if not text.strip():
            return self.snippet(content)
        document = JsonText(text)
        for name, server in content.items():
            document = document.put([*self.section, name], server)
        return document.text

    def remove(self, text: str) -> str:
        """Return a configuration without our entry, and without the sections left empty by that.

        Raises:
            Conflict: it is no JSON, or not of the form of this client's.

        """
        if not self.find(text):
            return text
        path: Sequence[str] = [*self.section, NAME]
        document = JsonText(text).without(path)
        while (path := path[:-1]) and (value := document.find(path)) is not None and not value.parts:
            document = document.without(path)
        return document.text


@dataclass(frozen=True, slots=True)
class TomlServer:
    """Our server in the TOML of Codex: a block of lines between two marks, so that the rest stays."""

    def snippet(self, content: Mapping[str, object]) -> str:
        """Return our block."""
        lines = [f"{_BEGIN}: `holdfast uninstall codex` removes this"]
        for name, server in content.items():
            members = cast("Mapping[str, object]", server)
            lines += [f"[mcp_servers.{name}]", *(f"{key} = {_toml(value)}" for key, value in members.items())]
        return "\n".join([*lines, _END, ""])

    def find(self, text: str) -> dict[str, object]:
        """Return our entry in a configuration, by its name.

        Raises:
            Conflict: it is no TOML.

        """
        block = _BLOCK.search(_check_toml(text))
        servers = tomllib.loads(block[0]).get("mcp_servers") if block else None
        return {NAME: servers[NAME]} if isinstance(servers, dict) and NAME in servers else {}

    def add(self, text: str, content: Mapping[str, object]) -> str:
        """Return a configuration with our block, in place of an earlier one.

        Raises:
            Conflict: it is no TOML, or has the server already, not by us.

        """
        _check_toml(text)
        line = "\r\n" if "\r\n" in text else "\n"
        block = self.snippet(content).replace("\n", line)
        if old := _BLOCK.search(text):
            after = text[: old.start()] + block + text[old.end() :]
        else:
            gap = "" if not text else line if text.endswith("\n") else line * 2
            after = text + gap + block
        try:
            tomllib.loads(after)
        except tomllib.TOMLDecodeError as error:
            what = "The configuration has a server `holdfast` already, or writes its servers as one value."
            raise Conflict(what, "Remove it with `codex mcp remove holdfast`, then try again.") from error
        return after

    def remove(self, text: str) -> str:
        """Return a configuration without our block, and without the line before it.

        Raises:
            Conflict: it is no TOML.

        """
        block = _BLOCK.search(_check_toml(text))
        if block is None:
            return text
        before = re.sub(r"(?<=\n)\r?\n\Z", "", text[: block.start()])
        after = before + text[block.end() :]
        _check_toml(after)
        return after


@dataclass(frozen=True, slots=True)
class WholeFile:
    """A file that is ours as a whole."""

    mark: str
    """The text that each version of the file has."""

    def snippet(self, content: Mapping[str, object]) -> str:
        """Return the file."""
        return str(content[NAME])

    def find(self, text: str) -> dict[str, object]:
        """Return the file as it is, if it is ours."""
        return {NAME: text} if self.mark in text else {}

    def add(self, text: str, content: Mapping[str, object]) -> str:  # noqa: ARG002 - nothing else is in it
        """Return the file as it shall be."""
        return self.snippet(content)

    def remove(self, text: str) -> str:
        """Return nothing in place of our file, and another one as it is."""
        return "" if self.mark in text else text


Entries = ServerEntry | TomlServer | WholeFile


def _toml(value: object) -> str:
    """Return a value of a server in TOML, whose strings and lists are written as in JSON."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{json.dumps(key)} = {_toml(item)}' for key, item in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    # DEL has to be escaped in TOML; JSON in ASCII writes other characters as pairs of halves, TOML does not.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _check_toml(text: str) -> str:
    """Return a text that is TOML.

    Raises:
        Conflict: it is not.

    """
    try:
        tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise Conflict("The configuration is not TOML.", "Mend it, or add the entry by hand.") from error
    return text
