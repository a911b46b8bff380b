"""The hooks of ours that the configurations of clients list."""

import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from holdfast.errors import Conflict
from holdfast_cli.hooks.clients import NAMES, Client, client_of
from holdfast_cli.hooks.hook_entries import event_of
from holdfast_cli.hooks.json_text import JsonText

_MOST = 4 << 20  # bytes of a configuration
_PATIENCE = 5.0  # seconds for a client to say its version
_PROGRAMS = {"claude-code": "claude", "codex": "codex", "gemini": "gemini"}


@dataclass(frozen=True, slots=True)
class Installation:
    """The hooks of ours in one file: the command of each event, and since when the file is as it is.

    `problem` says why the file cannot be read, "" if it can.
    """

    client: str
    path: Path
    commands: dict[str, str]
    since: float
    problem: str = ""

    @property
    def database(self) -> str:
        """The database that the hooks name, "" for the default."""
        for command in self.commands.values():
            words = _words(command)
            if "--db" in words[:-1]:
                return words[words.index("--db") + 1]
        return ""

    def missing_programs(self) -> list[str]:
        """Return the programs that the hooks call and that are not there any more."""
        programs = {next(iter(_words(command)), "") for command in self.commands.values()}
        return sorted(name for name in programs if Path(name).is_absolute() and not Path(name).exists())

    @property
    def needs_path(self) -> bool:
        """Whether the hooks look for `holdfast` on the path, as shared ones do, and it is not there."""
        by_name = any(_words(command)[:1] in (["if"], ["holdfast"]) for command in self.commands.values())
        return by_name and shutil.which("holdfast") is None


def installations(home: Path, root: Path) -> list[Installation]:
    """Return the files of all clients that list hooks of ours, of the user and of a project."""
    files = []
    for name in NAMES:
        client = client_of(name)
        places = [client.folder_in(home) / client.user_file, root / client.folder / client.project_file]
        files += [_installation(client, path) for path in dict.fromkeys(places)]
    return [file for file in files if file.commands or file.problem]


def hooks_switch(home: Path, root: Path) -> Path | None:
    """Return the settings of Claude Code that switch off all hooks, None if they run.

    The local settings of the project count before its own, and those before the user's.
    """
    folder = root / ".claude"
    user = client_of("claude-code").folder_in(home) / "settings.json"
    for path in (folder / "settings.local.json", folder / "settings.json", user):
        try:
            with path.open("rb") as stream:
                settings = JsonText(stream.read(_MOST).decode("utf-8")).root.plain
        except (OSError, ValueError, Conflict):
            continue
        off = settings.get("disableAllHooks") if isinstance(settings, dict) else None
        if isinstance(off, bool):
            return path if off else None
    return None


def client_version(name: str) -> str:
    """Return the version that a client reports, "" if it does not within its time."""
    program = shutil.which(_PROGRAMS.get(name, ""))
    if program is None:
        return ""
    try:
        result = subprocess.run(  # noqa: S603 - the program of that name on the path, without a shell
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    lines = result.stdout[:1000].decode("utf-8", "replace").split("\n")
    return lines[0].strip()[:80]


def _installation(client: Client, path: Path) -> Installation:
    try:
        with path.open("rb") as stream:
            since, content = path.stat().st_mtime, stream.read(_MOST + 1)
    except FileNotFoundError:
        return Installation(client.name, path, {}, 0.0)
    except OSError as error:
        return Installation(client.name, path, {}, 0.0, error.strerror or "It cannot be read.")
    if b"holdfast" not in content:
        return Installation(client.name, path, {}, since)
    try:
        # As `holdfast install` reads it: Gemini CLI, for one, allows comments.
        document = JsonText(content.decode("utf-8")).root.plain
    except (ValueError, Conflict):
        return Installation(client.name, path, {}, since, "It is no JSON, and the client may ignore it.")
    own = [command for command in _commands(document) if f"--client {client.name}" in command]
    commands = {event: command for command in own if (event := event_of(command))}
    return Installation(client.name, path, commands, since)


def _commands(document: object) -> Iterator[str]:
    """Yield the commands of a configuration, however the client groups them."""
    pending = [document]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            if isinstance(command := value.get("command"), str):
                yield command
            pending += value.values()
        elif isinstance(value, list):
            pending += value


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return []
