"""The parts to install into a client, and their files: hooks, the server entry, a skill or a rule."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from holdfast.errors import HoldfastError, InvalidInput, Unavailable
from holdfast_cli.hooks.clients import ONLY_SERVER, Client, client_of
from holdfast_cli.hooks.config_files import backups, read_config
from holdfast_cli.hooks.hook_call import EVENTS
from holdfast_cli.hooks.hook_entries import HookEntries
from holdfast_cli.hooks.server_entries import NAME, Entries, ServerEntry, TomlServer, WholeFile

_TYPED = ("claude-code", "vscode")
_MARK = "<!-- installed by holdfast -->"
# A password may have any character but "@" left as it is.
_PASSWORD = re.compile(r"://[^@:]*+:[^@]++@|[?&]password=.", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Installed:
    """Entries of ours in one file."""

    path: Path
    entries: HookEntries | Entries
    wanted: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Setup:
    """The options of an installation: those of the memory, and the project, None for the user."""

    location: str = ""
    """The path or URL of the database that was named, "" for the default."""
    tenant: str = ""
    user: str = ""
    agent: str = ""
    read_only: bool = False
    project: Path | None = None
    server: bool = True

    @property
    def has_password(self) -> bool:
        """Whether the database is a URL with a password."""
        return _PASSWORD.search(self.location) is not None

    def words(self, *names: str) -> list[str]:
        """Return the options of these names, as far as they are given."""
        return [
            word for name in names if (value := getattr(self, name)) for word in (f"--{name}", str(value))
        ]


def installed(name: str, setup: Setup) -> list[Installed]:
    """Return the parts to install into a client.

    Raises:
        InvalidInput: hooks would show a password, or others would get what is only this user's.
        Unavailable: the user has no home folder.

    """
    if name in ONLY_SERVER:
        if setup.project is not None:
            raise InvalidInput(f"{name} has no configuration of a project.", "Leave out --project.")
        return [_server(name, setup)]
    client = client_of(name)
    shared = _is_shared(client, setup)
    hooks = HookEntries(client)
    commands = {event: hook_command(client, event, setup, shared=shared) for event in EVENTS}
    folder = setup.project / client.folder if setup.project else client.folder_in(home_folder())
    parts = [
        Installed(
            folder / (client.project_file if setup.project else client.user_file),
            hooks,
            hooks.entries_for(commands),
        )
    ]
    if setup.server and not shared:
        parts.append(_server(name, setup))
    if name == "claude-code" and setup.project is None:
        skill = folder / "skills" / "holdfast-memory" / "SKILL.md"
        parts.append(Installed(skill, WholeFile(_MARK), {NAME: skill_text()}))
    return parts


def _is_shared(client: Client, setup: Setup) -> bool:
    """Return whether others run the hooks as well.

    Raises:
        InvalidInput: the hooks would show a password, or others would get what is only this user's.

    """
    shared = client.shared and setup.project is not None
    if setup.has_password:
        what = "The command line of a hook would show the password of the database to all on this machine."
        raise InvalidInput(what, "Leave it out of the URL, and write it into ~/.pgpass.")
    if shared and (setup.location or setup.words("tenant", "user")):
        todo = "Leave out --db and --user, or --project."
        raise InvalidInput(f"{client.title} has one file of hooks for all who work on a project.", todo)
    return shared


def hook_command(client: Client, event: str, setup: Setup, *, shared: bool) -> str:
    """Return the command line of a hook.

    One that others run as well does nothing where Holdfast is missing. Any other names the very Python that
    runs now: a client has neither our path nor our environment. -P: nothing in the folder of a project is to
    be imported in its place.
    """
    words = ["hook", event, "--client", client.name]
    if shared:
        return f"if command -v holdfast >/dev/null 2>&1; then holdfast {' '.join(words)}; fi"
    database = ["--db", setup.location] if setup.location else []
    scope = setup.words("tenant", "user")
    return _line([sys.executable, "-P", "-m", "holdfast", *words, *database, *scope])


def _line(words: Sequence[str]) -> str:
    if os.name == "nt":
        # Slashes mean the same to all shells of Windows.
        return subprocess.list2cmdline([words[0].replace("\\", "/"), *words[1:]])
    return shlex.join(words)


def server_entry(name: str, setup: Setup) -> dict[str, object]:
    """Return the entry by which a client starts our MCP server.

    The database is in the environment, where lists of processes do not show it: a URL may have a password.
    """
    scope = setup.words("tenant", "user", "agent")
    # The hooks of a coding agent store in the project of the folder, so its tools look there.
    scope += [] if name in ONLY_SERVER else ["--project", "."]
    args = ["-P", "-m", "holdfast", "mcp", *scope, *(["--read-only"] if setup.read_only else [])]
    kind = {"type": "stdio"} if name in _TYPED else {}
    around = {"env": {"HOLDFAST_DB": setup.location}} if setup.location else {}
    return {**kind, "command": sys.executable, "args": args, **around}


def _server(name: str, setup: Setup) -> Installed:
    # Only who installs waits for it.
    from platformdirs import user_config_path

    home = home_folder()
    entry = ServerEntry(("servers" if name == "vscode" else "mcpServers",))
    match name:
        case "claude-code":
            path = Path(os.environ.get("CLAUDE_CONFIG_DIR") or home) / ".claude.json"
            if setup.project is not None:
                # What Claude Code calls the local scope.
                entry = ServerEntry(("projects", str(setup.project), "mcpServers"))
        case "codex":
            servers = {NAME: server_entry(name, setup)}
            return Installed(client_of(name).folder_in(home) / "config.toml", TomlServer(), servers)
        case "cursor":
            path = home / ".cursor" / "mcp.json"
        case "gemini":
            path = home / ".gemini" / "settings.json"
        case "claude-desktop":
            path = user_config_path("Claude", appauthor=False, roaming=True) / "claude_desktop_config.json"
        case _:
            path = user_config_path("Code", appauthor=False, roaming=True) / "User" / "mcp.json"
    return Installed(path, entry, {NAME: server_entry(name, setup)})


def skill_text() -> str:
    """Return the skill that teaches an agent when to use the memory."""
    plugin = files("holdfast_cli.hooks").joinpath("plugin")
    return plugin.joinpath("skills", "memory", "SKILL.md").read_text("utf-8")


def home_folder() -> Path:
    """Return the home folder of the user.

    Raises:
        Unavailable: there is none.

    """
    try:
        return Path.home()
    except RuntimeError as error:
        raise Unavailable("There is no home folder to find the configuration in.", "Set HOME.") from error


def project_root(folder: Path) -> Path:
    """Return the repository that a folder is in, or else the folder itself."""
    real = Path(os.path.realpath(folder))
    return next((place for place in (real, *real.parents) if (place / ".git").exists()), real)


def text_with(parts: Sequence[Installed], text: str | None) -> str:
    """Return a file with all that is to be installed into it.

    Raises:
        Conflict: it cannot be changed without loss.

    """
    for part in parts:
        text = part.entries.add(text or "", part.wanted)
    return text or ""


def text_without(parts: Sequence[Installed], path: Path, text: str) -> str | None:
    """Return a file without what was installed into it, None if nothing else was ever there.

    If installing into a backup gives the very text that is there, then that backup is the text that
    was there before.

    Raises:
        Conflict: it cannot be changed without loss.

    """
    own = [Installed(path, part.entries, part.entries.find(text)) for part in parts]
    there = [part for part in own if part.wanted]
    if not there:
        return text
    for backup in backups(path):
        former = read_config(backup)
        if former is not None and _gives(there, former, text):
            return former
    if _gives(there, None, text):
        return None
    for part in there:
        text = part.entries.remove(text)
    return text or None


def _gives(parts: Sequence[Installed], former: str | None, text: str) -> bool:
    try:
        ours = any(part.entries.find(former or "") for part in parts)
        return not ours and text_with(parts, former) == text
    except HoldfastError:
        return False
