"""The options that all commands share, and the memory that they open."""

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar

import typer

from holdfast import Event, Memory
from holdfast.errors import HoldfastError, InvalidInput, Unavailable
from holdfast.kinds import Kind
from holdfast.port.safety import mask
from holdfast_cli.commands.render.screen import Part, Screen, answer, count, first_of
from holdfast_cli.hooks import location
from holdfast_cli.hooks.location import DATABASE
from holdfast_cli.hooks.project import PROJECT, project_of

USER = "HOLDFAST_USER"
_PARTS = ("tenant", "user", "agent", "project", "team")
EMBED = "HOLDFAST_EMBED"  # the name of an embedder, which `Memory(embed="auto")` reads
INTERRUPTED = 130  # 128 + SIGINT, as shells have it
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """How to answer. The fields are the options, but for `no_options`."""

    no_options: ClassVar[frozenset[str]] = frozenset({"words"})

    json: bool = False
    words: Sequence[str] = ()  # of the command line

    def again(self, **changes: int | str | bool) -> str:
        """Write the command line once more, with other values of some options."""
        at = self.words.index("--") if "--" in self.words else len(self.words)
        words = list(map(location.without_password, self.words[:at]))
        for name, value in changes.items():
            flag = f"--{name.replace('_', '-')}"
            pairs = zip(["", *words], words, strict=False)
            words = [
                word
                for before, word in pairs
                if word.partition("=")[0] != flag and (before != flag or isinstance(value, bool))
            ]
        return shlex.join(["holdfast", *words, *args(**changes), *self.words[at:]])

    def page(
        self, results: Iterable[T], limit: int | None, offset: int | None = None
    ) -> tuple[list[T], str | None]:
        """Return the first `limit` results, and the command line that shows more, if there is more."""
        rows = list(islice(results, None if limit is None else limit + 1))
        if limit is None or len(rows) <= limit:
            return rows, None
        return rows[:limit], self.again(offset=offset + limit) if offset is not None else self.larger(limit)

    def larger(self, limit: int) -> str:
        """Write the command line for twice as many results."""
        return self.again(limit=2 * limit or 1)

    def answer(self, document: Mapping[str, object]) -> Screen:
        """Print `document` if --json is given; return the screen for the text, which shows nothing then."""
        if self.json:
            answer(document)
        return Screen(quiet=self.json)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Output):
    """Which memory a command works on. The fields are the options, but for `no_options`."""

    no_options = Output.no_options | {"user_was_named"}
    # Whether the only user of a database is taken where none is named.
    guesses: ClassVar[bool] = True

    db: str | None = None
    tenant: str = ""
    user: str = ""
    agent: str = ""
    project: str = ""
    team: str = ""
    reads: list[str] | None = None
    user_was_named: bool = True  # on the command line

    @property
    def database(self) -> str:
        """The database that an option or the environment names; "" for the default."""
        return self.db or os.environ.get(DATABASE, "")

    @property
    def location(self) -> str:
        """The path or URL of the database, which may not exist."""
        return location.location_of(self.db or "")

    @property
    def shown_location(self) -> str:
        """The path or URL of the database, without its password."""
        return location.without_password(self.location)

    def open(
        self, *, create: bool = False, admin: bool = True, embed: bool = False, kinds: Sequence[Kind] = ()
    ) -> Memory:
        """Open the memory; create a database only if `create` is set.

        The command line may act for other users; a server for one user opens it without `admin`. With
        `embed`, it has the embedder that the environment names, which may take a second to load.

        Raises:
            Unavailable: there is no database yet.

        """
        database = self.location
        path = Path(database)
        # The default folder is made also where a client names it.
        if create and path == location.default_path():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not create and not location.is_there(database):
            makers = "`holdfast import PATH…` or `holdfast remember TEXT…`"
            todo = f"Make one with {makers}, or see a sample with `holdfast demo`."
            raise Unavailable(f"There is no database at {database}.", todo)
        places = () if "://" in database else (path, path.absolute().parent)
        memory = Memory(
            database,
            read_only=not create and not all(os.access(place, os.W_OK) for place in places),
            tenant=self.tenant,
            user=self.user,
            agent=self.agent,
            project=self.project_name,
            team=self.team,
            reads=self.reads or (),
            admin=admin,
            kinds=kinds,
            key=location.checksum_key(),
            embed="auto" if embed else None,
        )
        if admin and sys.stderr is not None and sys.stderr.isatty():
            # Of all spaces that are read.
            memory.scoped(user="", agent="").on("indexing", _show_indexing)
        return memory

    @property
    def project_name(self) -> str:
        """The project, "" for none."""
        name = self.project or ("" if self.team else os.environ.get(PROJECT, ""))
        return project_of(Path.cwd()).name if name == "." else name

    def project_of(self, *, no_projects: bool) -> Callable[..., str]:
        """Return a function from a file to its project: "" where all files go into one space."""
        # Only an import needs the importers.
        from holdfast_cli.hooks.session_logs import project_of_log

        return (lambda _: "") if no_projects or self.project_name or self.team else project_of_log

    def line(self, *words: object) -> str:
        """Write a command for the same memory, ready to be pasted into a shell but for a password."""
        db = args(db=location.without_password(self.db or ""))
        return shlex.join(["holdfast", *map(str, words), *db, *self.scope()])

    def scope(self) -> list[str]:
        """Return the options that name the scope."""
        parts = {name: getattr(self, name) for name in _PARTS}
        return [*args(**parts), *(word for space in self.reads or () for word in ("--reads", space))]

    def whose(self) -> str:
        """Return the scope as the end of a sentence, "" for the default."""
        parts = [f"{name} {value!r}" for name in _PARTS if (value := getattr(self, name))]
        return f" for {', '.join(parts)}" if parts else ""

    def with_user(self) -> Self:
        """Take the user that the environment names, or else the only one there is, and say so."""
        if USER in os.environ:
            return replace(self, user=os.environ[USER], user_was_named=False)
        users = self._users() if self.guesses else []
        if len(users) != 1:
            return replace(self, user_was_named=False)
        if users[0]:
            Screen(sys.stderr).say((f"Of user {users[0]!r}, the only one here.", "dim"))
        return replace(self, user=users[0], user_was_named=False)

    def others(self) -> str:
        """Return a sentence that names the other users, "" if the user is one of them."""
        users = self._users()
        names = [repr(user) for user in users if user]
        if not names or (self.user and self.user in users):
            return ""
        verb = "is" if len(names) == 1 else "are"
        return f"There {verb} {count(len(names), 'user')} here: {first_of(names)}. Name one by --user."

    def say_nothing(self, screen: Screen, what: str, todo: str = "") -> None:
        """Print that nothing is there, and a hint: other users, or else what to do."""
        screen.say(what)
        if not self.json and (hint := self.others() or todo):
            screen.say(f"→ {hint}", hang=2)

    # Any: of JSON.
    def show_list(
        self,
        document: Mapping[str, Any],
        columns: Mapping[str, Sequence[Part]],
        nothing: str,
        todo: str = "",
        *,
        whole: str = "",
    ) -> Screen:
        """Answer with a document and a table of its rows, or with a hint for none; return the screen.

        `more` of the document is the command line that shows the rest.
        """
        screen = self.answer(document)
        if any(columns.values()):
            screen.table(columns, whole=whole)
        else:
            self.say_nothing(screen, nothing, todo)
        screen.say_more(document["more"])
        return screen

    def _users(self) -> list[str]:
        """Return the users; none if the database cannot be opened, which the command reports."""
        try:
            with self.open() as memory:
                return memory.grants.users()
        except HoldfastError:
            return []


def _show_indexing(event: Event) -> None:
    # Loaded only for a progress bar.
    from holdfast_cli.commands.render.progress import show_indexing

    show_indexing(event)


def args(**options: str | bool | int | None) -> list[str]:
    """Write options as words of a command line; blank ones and flags that are not set are left out."""
    words = []
    for name, value in options.items():
        if value not in (None, "") and value is not False:
            words += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    return words


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions(Options):
    """The memory that a command reads, and whether it masks credentials. The fields are options."""

    secrets: Literal["mask", "show"] = "mask"

    def mask(self, results: T) -> T:
        """Return results with the credentials in messages and summaries masked, unless they are shown."""
        return mask(results) if self.secrets == "mask" else results


def complain(what: str, todo: str = "") -> None:
    """Print on stderr what is wrong, and what to do about it."""
    screen = Screen(sys.stderr)
    screen.say(("Error: ", "bold red"), what)
    if todo:
        screen.say("→ ", todo, hang=2)


def confirm(question: str, danger: str, way_out: str, diff: Callable[[], None] | None = None) -> None:
    """Ask on the terminal, and go on only if the answer is yes; "d" shows the difference first.

    Raises:
        InvalidInput: nobody is there to answer.
        typer.Exit: the answer is no.

    """
    if sys.stdin is None or not sys.stdin.isatty():
        raise InvalidInput(f"{danger}, and nobody is there to be asked.", way_out)
    answer = ask(f"{question} [y/N{', d for the difference' if diff else ''}] ")
    if diff and answer in ("d", "diff"):
        diff()
        answer = ask(f"{question} [y/N] ")
    if answer not in ("y", "yes"):
        Screen(sys.stderr).say("Nothing was changed.")
        raise typer.Exit(1)


def ask(question: str) -> str:
    """Ask on the terminal, and return the answer in lower case; "" where nobody is there."""
    if sys.stdin is None or not sys.stdin.isatty():
        return ""
    sys.stderr.write(question)  # `typer.confirm` would write to stdout as well
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower()
