"""The commands that bring the memory into coding agents and other clients: install, uninstall."""

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from holdfast.errors import Conflict, InvalidInput, MissingExtra
from holdfast.types import Scope
from holdfast_cli.commands.options import Options, ask, confirm
from holdfast_cli.commands.render.screen import Screen, count
from holdfast_cli.commands.transfer import import_
from holdfast_cli.hooks.clients import NAMES, ONLY_SERVER, Client, client_of
from holdfast_cli.hooks.config_files import check_writable, read_config, write_config
from holdfast_cli.hooks.install import (
    Installed,
    Setup,
    home_folder,
    installed,
    project_root,
    text_with,
    text_without,
)

# In a URL that is a JSON text: before the host, or among its parameters.
_PASSWORD = re.compile(
    r'(?<=://)((?:[^:@/"\\\n]|\\.){0,500}:)(?:[^"\\\n]|\\.){1,2000}(?=@)|(?<=[?&]password=)(?:[^&"\\\n]|\\.)+'
)
_without_passwords = partial(_PASSWORD.sub, r"\1***")


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallOptions(Options):
    """The memory to install. Its user is not guessed: that would depend on who else has one today."""

    guesses = False
    # The project is that of the folder that the client works in.
    no_options = Options.no_options | {"project", "team", "reads"}


@dataclass(frozen=True, slots=True)
class _Change:
    """A change of a file: its text before, None if there is no such file, and after, None if it goes."""

    path: Path
    before: str | None
    after: str | None

    @property
    def changes(self) -> bool:
        """Whether there is anything to write."""
        return self.before != self.after


def install(
    options: InstallOptions,
    *,
    client: str,
    in_project: bool = False,
    read_only: bool = False,
    only_print: bool = False,
    diff: bool = False,
    yes: bool = False,
) -> None:
    """Install the memory into a coding agent: its hooks, and the tools of the MCP server.

    It lists the files that it writes, asks, and keeps backups; then it offers to import the earlier sessions
    of the client. Claude Desktop and VS Code get the tools alone.

    For example: holdfast install claude-code --user ada
    """
    # Refuse what would only fail when a client starts it, where few would look for the reason.
    Scope(options.tenant, options.user, options.agent)
    has_server = find_spec("mcp") is not None
    if client in ONLY_SERVER and not has_server:
        raise MissingExtra.of("mcp")
    setup = _setup(options, client, in_project=in_project, read_only=read_only, server=has_server)
    parts = installed(client, setup)
    if only_print:
        _print(options, parts)
        return
    try:
        changes = [_change(path, group, added=True) for path, group in _by_file(parts)]
    except Conflict:
        _print(options, parts)
        raise
    _write(options, changes, diff=diff, yes=yes, private=setup.has_password, added=True)
    screen = Screen(sys.stderr, quiet=options.json)
    for hint in _hints(client, setup):
        screen.say(f"→ {hint}", hang=2)
    if client in NAMES and any(change.changes for change in changes) and not options.json:
        _offer_import(options, client_of(client), screen, yes=yes or in_project)


def uninstall(
    options: InstallOptions, *, client: str, in_project: bool = False, diff: bool = False, yes: bool = False
) -> None:
    """Remove from a client what `holdfast install` added to it, and nothing else.

    The memory itself stays. For example: holdfast uninstall claude-code
    """
    setup = Setup(project=project_root(Path.cwd()) if in_project else None)
    parts = installed(client, setup)
    changes = [_change(path, group, added=False) for path, group in _by_file(parts)]
    existing = [change for change in changes if change.before is not None]
    _write(options, existing, diff=diff, yes=yes, private=False, added=False)


def _setup(options: InstallOptions, client: str, *, in_project: bool, read_only: bool, server: bool) -> Setup:
    project = project_root(Path.cwd()) if in_project else None
    shared = in_project and client in NAMES and client_of(client).shared
    # A file that others share must not depend on the environment of this user.
    database = options.db if shared else options.database
    return Setup(
        location=_absolute(options.location) if database else "",
        tenant=options.tenant,
        user=options.user if options.user_was_named or not shared else "",
        agent=options.agent,
        read_only=read_only,
        project=project,
        server=server,
    )


def _change(path: Path, parts: Sequence[Installed], *, added: bool) -> _Change:
    """Return the change of a file.

    Raises:
        Conflict: it cannot be changed without loss.

    """
    before = read_config(path)
    try:
        if added:
            return _Change(path, before, text_with(parts, before))
        return _Change(path, before, text_without(parts, path, before) if before is not None else None)
    except Conflict as error:
        raise Conflict(f"{path} stays as it is. {error.what}", error.todo) from error


def _absolute(location: str) -> str:
    """Return a location that holds in whichever folder the client starts."""
    if location == ":memory:":
        raise InvalidInput("A memory in `:memory:` ends with each call.", "Name a file with --db.")
    return location if "://" in location else str(Path(location).absolute())


def _by_file(parts: Sequence[Installed]) -> list[tuple[Path, list[Installed]]]:
    """Group parts by their file, with links resolved."""
    groups: dict[Path, list[Installed]] = {}
    for part in parts:
        groups.setdefault(Path(os.path.realpath(part.path)), []).append(part)
    return list(groups.items())


def _write(
    options: Options, changes: Sequence[_Change], *, diff: bool, yes: bool, private: bool, added: bool
) -> None:
    screen = Screen(sys.stderr)
    todo = [change for change in changes if change.changes]
    for change in todo:
        # Before the first of them is written.
        check_writable(change.path)
    if diff:
        _show_difference(screen, todo)
    if todo and not yes:
        for change in todo:
            what = "new" if change.before is None else "removed" if change.after is None else "changed"
            screen.say((f"{what:<9}", "bold"), str(change.path), hang=9)
        names = ", ".join(str(change.path) for change in todo)
        way_out = "Pass --yes or --print." if added else "Pass --yes."
        show = None if diff else partial(_show_difference, screen, todo)
        confirm("Write it?", f"This changes {names}", way_out, show)
    backups = {
        change.path: write_config(change.path, change.before, change.after, private=private)
        for change in todo
    }
    _report(options, changes, backups, added=added)


def _show_difference(screen: Screen, changes: Sequence[_Change]) -> None:
    for change in changes:
        # The password of a database is not shown, be it the new one or the one before.
        before, after = (change.before or "").splitlines(), (change.after or "").splitlines()
        screen.diff(before, after, str(change.path), render=_without_passwords)


def _offer_import(options: InstallOptions, client: Client, screen: Screen, *, yes: bool) -> None:
    """Ask whether to import the earlier sessions of a client; where nobody is asked, say how to."""
    folder, number = client.earlier_sessions(home_folder())
    if not number:
        return
    sessions = f"{count(number, 'earlier session')} of {client.title} in {folder}"
    if not yes and ask(f"Import {sessions}, each into its project? [y/N] ") in ("y", "yes"):
        import_(options, paths=[folder])
    else:
        screen.say(f"→ Import {sessions}: {options.line('import', folder)}", hang=2)


def _report(
    options: Options, changes: Sequence[_Change], backups: dict[Path, Path | None], *, added: bool
) -> None:
    rows = [
        {
            "path": str(change.path),
            "changed": change.changes,
            "backup": str(backup) if (backup := backups.get(change.path)) else None,
        }
        for change in changes
    ]
    screen = options.answer({"files": rows})
    for row in rows:
        if not row["changed"]:
            screen.say(f"{row['path']} has {'all of it' if added else 'nothing of ours'} already.")
            continue
        before = f" What it was before is in {row['backup']}." if row["backup"] else ""
        screen.say(("Wrote ", "bold"), f"{row['path']}.{before}")
    if not rows:
        screen.say("Nothing is installed there.")


def _hints(client: str, setup: Setup) -> list[str]:
    """Return hints on the steps that remain."""
    hints = ["Start the client anew, or have it read its configuration again."]
    if client == "codex":
        hints.append("Codex runs no hook that you have not trusted: call /hooks in it, and trust these.")
    if setup.project is not None and client in NAMES:
        shared = client_of(client).shared
        hints.append(
            "Others who work on the project run these hooks too once you commit the file; without Holdfast "
            "they do nothing."
            if shared
            else "Keep .claude/settings.local.json out of commits: it names paths of this machine."
        )
        if shared:
            hints.append(f"The tools are installed for the user: `holdfast install {client}`.")
    if client in NAMES and _is_elsewhere(client, setup):
        hints.append("They are installed for the project and for the user: each hook would run twice here.")
    if client in NAMES and not setup.server:
        hints.append(f"Hooks alone: the tools need an extra. {MissingExtra.of('mcp').todo}")
    return hints


def _is_elsewhere(client: str, setup: Setup) -> bool:
    """Return whether the hooks are installed for the user as well as for the project of this folder."""
    other = Setup(project=None if setup.project else project_root(Path.cwd()), server=False)
    hooks = installed(client, other)[0]
    try:
        return bool(hooks.entries.find(read_config(hooks.path) or ""))
    except (Conflict, OSError):
        # It is another file than the one that was written.
        return False


def _print(options: Options, parts: Sequence[Installed]) -> None:
    texts = [(str(part.path), part.entries.snippet(part.wanted)) for part in parts]
    visible = [(path, _without_passwords(text)) for path, text in texts]
    if visible != texts:
        Screen(sys.stderr).say("The password of the database is left out: put it where *** stands.")
    options.answer({"files": [{"path": path, "add": text} for path, text in visible]})
    for path, text in () if options.json else visible:
        Screen(sys.stderr).say(f"This belongs into {path}:")
        sys.stdout.write(text)
