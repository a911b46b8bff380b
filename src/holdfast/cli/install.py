"""How this server comes into the configuration of a client: shown, asked for, and written at one stroke."""

import os
import re
import shutil
import sys
import tempfile
from importlib.util import find_spec
from itertools import count
from pathlib import Path

from holdfast.cli.options import ENVIRONMENT, Options, confirm, given
from holdfast.cli.render.screen import Screen
from holdfast.errors import Conflict, MissingExtra, Unavailable
from holdfast.integrations.mcp.install import CLIENTS, entry, installed, snippet
from holdfast.types import Scope

# In a URL that is a JSON text: before the host, or among its parameters.
_PASSWORD = re.compile(
    r'(?<=://)((?:[^:@/"\\\n]|\\.){0,500}:)(?:[^"\\\n]|\\.){1,2000}(?=@)|(?<=[?&]password=)(?:[^&"\\\n]|\\.)+'
)
_HIDDEN = r"\1***"


def install(options: Options, name: str, *, read_only: bool, only_print: bool, yes: bool) -> None:
    """Add this server to the configuration of a client, or print what to add.

    Raises:
        Conflict: the configuration cannot be changed without loss; what to add is printed.
        InvalidInput: nobody is there to be asked, or nobody can be called as the user is.
        MissingExtra: what is added could not start: the SDK is not installed.
        Unavailable: the user has no home folder.
        typer.Exit: it may not be changed.

    """
    # Refuse what would only fail when a client starts it, where few would look for the reason.
    Scope(options.tenant, options.user, options.agent)
    if find_spec("mcp") is None:
        raise MissingExtra.of("mcp")
    client = CLIENTS[name]
    server = entry(client, _command(options, read_only=read_only), _environment(options))
    path = Path(os.path.realpath(_configuration(name)))  # behind a link to it
    if only_print:
        _print(options, path, snippet(client, server))
        return
    before = _text(path)
    try:
        after = installed(before, client, server)
    except Conflict:
        _print(options, path, snippet(client, server))
        raise
    if after == before:
        _report(options, path, None, changed=False)
        return
    # The password of a database is not shown, be it the new one or the one before.
    Screen(sys.stderr).diff(before.splitlines(), after.splitlines(), str(path), shown=_without_passwords)
    if not yes:
        confirm("Write it?", f"This changes {path}", "Pass --yes or --print.")
    _report(options, path, _write(path, before, after), changed=True)


def _command(options: Options, *, read_only: bool) -> list[str]:
    """Name the very program that runs now: a client has neither our path nor our environment."""
    # -P: a client starts it in the folder of a project, and nothing there is to be imported in our place.
    program = [sys.executable, "-P", "-m", "holdfast", "mcp"]
    return [*program, *options.scope(), *given(read_only=read_only)]


def _environment(options: Options) -> dict[str, str]:
    """Name the database where lists of processes do not show it: a URL may have a password."""
    location = options.location
    is_file = "://" not in location and location != ":memory:"
    return {ENVIRONMENT: str(Path(location).absolute()) if is_file else location}


def _configuration(name: str) -> Path:
    """Find the configuration of a client that holds for all projects of its user.

    Raises:
        Unavailable: the user has no home folder.

    """
    # Only who installs waits for it.
    from platformdirs import user_config_path

    try:
        home = Path.home()
    except RuntimeError as error:
        raise Unavailable("There is no home folder to find the configuration in.", "Set HOME.") from error
    match name:
        case "claude-code":
            return Path(os.environ.get("CLAUDE_CONFIG_DIR") or home) / ".claude.json"
        case "claude-desktop":
            folder = user_config_path("Claude", appauthor=False, roaming=True)
            return folder / "claude_desktop_config.json"
        case "cursor":
            return home / ".cursor" / "mcp.json"
        case _:
            return user_config_path("Code", appauthor=False, roaming=True) / "User" / "mcp.json"


def _text(path: Path) -> str:
    """Read a configuration as it is written, "" if it is not there.

    Raises:
        Conflict: it is no text.

    """
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise Conflict(f"{path} is not text in UTF-8.", "Add the entry by hand; --print shows it.") from error


def _without_passwords(text: str) -> str:
    return _PASSWORD.sub(_HIDDEN, text)


def _write(path: Path, before: str, after: str) -> Path | None:
    """Replace a configuration atomically, and return the path of the backup, if there was one.

    Raises:
        Conflict: it was changed since it was read.

    """
    if _text(path) != before:
        raise Conflict(f"{path} was changed at this moment.", "Close the client, then try again.")
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # only its owner can read it
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(after.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        backup = _backup(path) if before else None
        if backup is not None:
            shutil.copy2(path, backup)
            shutil.copymode(path, name)
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)
    return backup


def _backup(path: Path) -> Path:
    """Find a name that nothing has, not even a link to nowhere: an earlier backup stays what it is."""
    names = (path.with_name(f"{path.name}.bak{number or ''}") for number in count())
    return next(name for name in names if not os.path.lexists(name))


def _print(options: Options, path: Path, text: str) -> None:
    shown = _without_passwords(text)
    if shown != text:
        Screen(sys.stderr).say("The password of the database is left out: put it where *** stands.")
    options.answer({"path": str(path), "add": shown})
    if not options.json:
        Screen(sys.stderr).say(f"This belongs into {path}:")
        sys.stdout.write(f"{shown}\n")


def _report(options: Options, path: Path, backup: Path | None, *, changed: bool) -> None:
    screen = options.answer(
        {"path": str(path), "changed": changed, "backup": str(backup) if backup else None}
    )
    if not changed:
        screen.say(f"{path} has this server already.")
        return
    kept = f" What it was before is in {backup}." if backup else ""
    screen.say(("Added ", "bold"), f"this server to {path}.{kept}")
    screen.say("→ Start the client anew, or have it read its configuration again.")
