"""Memory as files: the six commands of the Anthropic memory tool over a tree of records, with its exact strings.

A file is a record of the kind "file": its path is the record's `target`, its content the record's text, to the last
byte. So files have versions, and `changes`, `at`, `undo`, `rollback`, `erase` and `recall` know them as everything else.
Folders are there as long as files lie in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.errors import Conflict, InvalidInput
from holdfast.kinds import Kind, table
from holdfast.providers.null import NullMemory
from holdfast.providers.tracing import unwrap
from holdfast.records.draft import TRUSTED, allow, content_of, policy, quarantine_reason, scan
from holdfast.records.view import View
from holdfast.records.writing import Knowledge
from holdfast.safety import guard
from holdfast.store import record_changes, records
from holdfast.store.record_changes import Writing
from holdfast.store.records import NOW, RecordFilter
from holdfast.text.clean import clean
from holdfast.tools import file_lines
from holdfast.tools.file_paths import ROOT, Refused, is_below, resolve
from holdfast.tools.file_tree import Tree, at_or_below, is_folder, lay_out, versions
from holdfast.types import Record, Writer

KIND = "file"
TOOL: Mapping[str, str] = {"type": "memory_20250818", "name": "memory"}  # what the API is told of this tool
_ATTEMPTS = 1_000  # of two that write at once one always succeeds, so that many others must have
_CUT = "\nNote: a credential was cut out of it, as none is kept. View the file before you edit it again."
_WAITING = "its text looks like an order to a model and waits for the user to release or discard it."
_NEEDS = {
    "view": ("path",),
    "create": ("path", "file_text"),
    "str_replace": ("path", "old_str", "new_str"),
    "insert": ("path", "insert_line", "insert_text"),
    "delete": ("path",),
    "rename": ("old_path", "new_path"),
}
_MAY_HAVE = {"view": ("view_range",)}


@dataclass(frozen=True, slots=True)
class _Edit:
    """One version to write: a record, what it was before, and what is done to it."""

    record: Record
    before: Record | None
    action: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class _Author:
    """Who writes, for which agent, and what the policy says of files."""

    by: Writer
    agent: str
    rules: Kind


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a command writes, and what it answers."""

    edits: Sequence[_Edit]
    said: str


class Files:
    """Give an agent files to remember in, below `/memories`.

    Each handle has a tree of its own: that of its tenant, user and agent. Over a view of `Memory.at` it shows the tree as
    of then. Commands answer with the strings of the Anthropic SDK, and one line more where a credential was cut out. What
    an agent writes that looks like an order to a model is not in the tree until the user releases it
    (`Memory.release`), and the answer says so. `recall` finds files; no prompt shows one that was not recalled for it.

    A `NullMemory` has a tree that stays empty. Each command reads the whole tree, which takes 20 ms for a thousand files of 3,000 characters.

    >>> files = Files(memory)
    >>> files.create("/memories/plan.md", "Berlin in September")
    'File created successfully at: /memories/plan.md'

    Args:
        memory: whose files these are.
        by: who writes them; the one named by `acting`, or else the agent.

    """

    def __init__(self, memory: View, *, by: Writer | None = None) -> None:
        self._memory = unwrap(memory)
        if not isinstance(self._memory, View):
            raise InvalidInput(
                f"{type(memory).__name__!r} is no memory.", "Pass a Memory, or what its `at` gives."
            )
        self._by = by

    # As plain Python

    def paths(self) -> list[str]:
        """List the paths of all files, sorted."""
        return sorted(self._tree())

    def read(self, path: str) -> str:
        """Give the content of a file, to the last byte.

        Raises:
            Refused: there is no such file.

        """
        place = resolve(path)
        return self._found(self._tree(), place).text

    # The six commands

    def call(self, command: object) -> str:
        """Carry out a command as a model gives it: a dict with "command" and the arguments of that method.

        Raises:
            Refused: there is no such command, or an argument is missing; and as the methods do.

        """
        given = command if isinstance(command, Mapping) else {}
        name = given.get("command")
        if not isinstance(name, str) or name not in _NEEDS:
            raise Refused(f"Unknown command. Use one of {', '.join(_NEEDS)}.", "Correct `command`.")
        if missing := [f"`{one}`" for one in _NEEDS[name] if one not in given]:
            raise Refused(f"The command `{name}` needs {' and '.join(missing)}.", "Pass it.")
        method: Callable[..., str] = getattr(self, name)  # each command has the name of its method
        names = (*_NEEDS[name], *_MAY_HAVE.get(name, ()))
        return method(**{one: given[one] for one in names if one in given})

    def view(self, path: str, view_range: Sequence[int] | None = None) -> str:
        """Show a file with the numbers of its lines, or list a folder, two levels deep, without what begins with a dot.

        Args:
            path: of the file or the folder.
            view_range: the numbers of the first and the last line to show, counted from 1; -1 is the last line.

        Raises:
            Refused: there is no such path, or the range is not two whole numbers.

        """
        place, tree = resolve(path), self._tree()
        if place in tree:
            return file_lines.numbered(place, tree[place].text, view_range)
        inside = {
            one: len(record.text.encode("utf-8")) for one, record in tree.items() if is_below(one, place)
        }
        if place != ROOT and not inside:
            raise self._nothing(place)
        return file_lines.listing(place, inside)

    def create(self, path: str, file_text: str) -> str:
        """Make a new file.

        Raises:
            Refused: there is one of that path, or a file where a folder would have to be, or the text is too long.
            Denied: this writer may not write files.

        """
        place, text = resolve(path), _text(file_text, "file_text")

        def plan(tree: Tree, author: _Author) -> _Plan:
            if place in tree or is_folder(tree, place):
                raise Refused(f"File {place} already exists", "Change it, or choose another path.")
            _check_new(tree, place, author)
            draft = Record("", KIND, text, target=place, agent=author.agent)
            return self._written(
                author, place, draft, None, lambda _: f"File created successfully at: {place}"
            )

        return self._write(plan)

    def str_replace(self, path: str, old_str: str, new_str: str) -> str:
        """Put a text in place of another one, which must stand in the file once.

        Raises:
            Refused: there is no such file, or the text stands in it more often or not at all.
            Denied: this writer may not change files.

        """
        place, old, new = resolve(path), _text(old_str, "old_str"), _text(new_str, "new_str")

        def plan(tree: Tree, author: _Author) -> _Plan:
            before = self._found(tree, place)
            draft = replace(before, text=file_lines.replaced(place, before.text, old, new), target=place)
            position = before.text.find(old)
            return self._written(
                author, place, draft, before, lambda record: file_lines.snippet(record.text, position)
            )

        return self._write(plan)

    def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        """Insert a text after a line of a file; 0 is before the first.

        Raises:
            Refused: there is no such file or line.
            Denied: this writer may not change files.

        """
        place, text = resolve(path), _text(insert_text, "insert_text")

        def plan(tree: Tree, author: _Author) -> _Plan:
            before = self._found(tree, place)
            draft = replace(before, text=file_lines.inserted(before.text, insert_line, text), target=place)
            return self._written(author, place, draft, before, lambda _: f"The file {place} has been edited.")

        return self._write(plan)

    def delete(self, path: str) -> str:
        """Delete a file, or a folder with all that lies in it. The history keeps them; `Memory.undo` brings them back.

        Raises:
            Refused: there is nothing of that path, or it is `/memories` itself.
            Denied: this writer may not remove files.

        """
        place = resolve(path)
        if place == ROOT:
            raise Refused(f"Cannot delete the {ROOT} directory itself", "Delete what lies in it.")

        def plan(tree: Tree, author: _Author) -> _Plan:
            gone = at_or_below(tree, place)
            if not gone:
                raise Refused(f"The path {place} does not exist", "View the folder for what is there.")
            return _Plan(_deleted(gone.values(), author), f"Successfully deleted {place}")

        return self._write(plan)

    def rename(self, old_path: str, new_path: str) -> str:
        """Give a file or a folder another path. Files keep their ids, and so their history.

        Raises:
            Refused: there is nothing of the old path, something of the new one, or one lies within the other.
            Denied: this writer may not change files.

        """
        old, new = resolve(old_path), resolve(new_path)
        if old == ROOT:
            raise Refused(f"Cannot rename the {ROOT} directory itself", "Rename what lies in it.")

        def plan(tree: Tree, author: _Author) -> _Plan:
            if new == ROOT or at_or_below(tree, new):
                raise Refused(f"The destination {new} already exists", "Choose another path.")
            moved = at_or_below(tree, old)
            if not moved:
                raise Refused(f"The path {old} does not exist", "View the folder for what is there.")
            if is_below(new, old):
                raise Refused(f"Cannot rename {old} to a path within itself", "Choose another path.")
            _check_new(tree, new, author)
            allow(author.rules, author.by, "change")
            edits = [
                _Edit(
                    replace(record, target=resolve(new + path.removeprefix(old))),
                    record,
                    "rename",
                    f"from {path}",
                )
                for path, record in moved.items()
            ]
            return _Plan(edits, f"Successfully renamed {old} to {new}")

        return self._write(plan)

    def clear(self) -> str:
        """Delete all files of this tree. The history keeps them; `Memory.undo` brings them back.

        Raises:
            Denied: this writer may not remove files.

        """
        return self._write(lambda tree, author: _Plan(_deleted(tree.values(), author), "All memory cleared"))

    # What the commands are made of

    def _tree(self) -> Tree:
        return lay_out(self._memory.records(kind=KIND), self._memory.scope.agent)

    def _found(self, tree: Tree, place: str) -> Record:
        """Give the file of a path, or raise Refused."""
        if place in tree:
            return tree[place]
        if is_folder(tree, place):
            raise Refused(f"The path {place} is not a file.", "View it, and choose a file in it.")
        raise self._nothing(place)

    def _nothing(self, place: str) -> Refused:
        told = f"The path {place} does not exist. Please provide a valid path."
        if self._waiting(place):
            told += f" A file was to be made there: {_WAITING}"
        return Refused(told, "View the folder for what is there.")

    def _waiting(self, place: str) -> list[Record]:
        """List what is in quarantine for a path."""
        if not isinstance(self._memory, Knowledge):
            return []
        agent = self._memory.scope.agent
        held = self._memory.quarantine()
        return [one for one in held if (one.kind, one.target, one.agent) == (KIND, place, agent)]

    def _written(
        self,
        author: _Author,
        place: str,
        draft: Record,
        before: Record | None,
        answer: Callable[[Record], str],
    ) -> _Plan:
        """Plan what becomes of a new text: a version of its file, or a record that waits in quarantine."""
        allow(author.rules, author.by, "change" if before else "add")
        if len(draft.text) > author.rules.longest:
            raise Refused(
                f"The file would have {len(draft.text):,} characters; a file has at most {author.rules.longest:,}.",
                "Shorten it, or split it into several files.",
            )
        record = replace(_signed(draft, author.by), chat=self._writable()._chat(None) or draft.chat)  # noqa: SLF001 - our own
        if record.trust == "quarantined":
            aside = replace(record, id="", replaces=before.id if before else "")
            is_new = all(_held(one) != _held(aside) for one in self._waiting(draft.target))
            edits = [_Edit(aside, None, "quarantine", quarantine_reason(record))] if is_new else []
            return _Plan(edits, f"The file {place} was not written: {_WAITING}")
        is_changed = before is None or content_of(record) != content_of(before)
        edits = [_Edit(record, before, "replace" if before else "add")] if is_changed else []
        return _Plan(edits, answer(record) + (_CUT if record.text != draft.text else ""))

    def _writable(self) -> Knowledge:
        if not isinstance(self._memory, Knowledge):
            raise Refused("What was known earlier cannot be changed.", "Use the memory itself.")
        return self._memory

    def _write(self, plan: Callable[[Tree, _Author], _Plan]) -> str:
        """Plan on what is there, and write it in one transaction if that is still so; else plan again.

        Texts are scanned while planning, so that nobody waits for it.
        """
        memory = self._writable()
        if isinstance(memory, NullMemory):
            return plan({}, _author(memory, self._by)).said
        for _ in range(_ATTEMPTS):
            intake = memory._intake(self._by)  # noqa: SLF001 - our own
            seen, tree = records.space_state(intake.database, intake.space), self._tree()
            planned = plan(tree, _Author(intake.by, intake.scope.agent, policy(intake.kinds, KIND)))
            if not planned.edits:
                return planned.said
            with record_changes.writing(intake.database, intake.space, intake.now) as changes:
                if changes.seen != seen and versions(_read(changes, intake.scope.agent)) != versions(tree):
                    continue  # another one wrote or erased files in between
                written = [
                    changes.put(one.record, one.before, by=intake.by, action=one.action, why=one.why)
                    for one in planned.edits
                ]
            memory._open.events.tell_of(intake.scope, written)  # noqa: SLF001 - our own
            return planned.said
        raise Conflict("Others keep changing the files.", "Try again.")


def _read(changes: Writing, agent: str) -> Tree:
    wanted = RecordFilter(kinds=(KIND,), agents=(agent,))
    return lay_out(records.read(changes.tx, changes.space, NOW.version, wanted), agent)


def _author(memory: NullMemory, by: Writer | None) -> _Author:
    return _Author(memory._writer(by, "agent"), memory.scope.agent, policy(table(), KIND))  # noqa: SLF001 - our own


def _deleted(gone: Iterable[Record], author: _Author) -> list[_Edit]:
    allow(author.rules, author.by, "remove")
    return [_Edit(replace(one, retracted=True), one, "retract") for one in gone]


def _check_new(tree: Tree, place: str, author: _Author) -> None:
    """Raise Refused unless a file may come to stand at a path: it is shown to models in every listing."""
    for path in tree:
        if is_below(place, path):
            raise Refused(f"The path {path} is not a directory.", "Choose another path.")
    parts = (place.removeprefix(ROOT), *place.split("/")[2:])
    found = [one for part in parts for one in guard.scan(part)]
    if any(one.kind == "secret" and one.severity == "high" for one in found):
        raise Refused("The path holds a credential.", "Choose another path: credentials are not kept.")
    if guard.has_orders(found) and author.by not in TRUSTED:
        raise Refused("The path looks like an order to a model.", "Choose another path.")


def _signed(draft: Record, by: Writer) -> Record:
    """Scan the text of a draft as every text is scanned, and keep the white space around it."""
    text = draft.text
    if not text.strip():
        return replace(draft, by=by, flags=(), trust="trusted")
    scanned = scan(replace(draft, text=text.strip()), by)
    before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    return replace(scanned, text=f"{before}{scanned.text}{after}")


def _held(record: Record) -> tuple[str, str]:
    return record.text, record.replaces


def _text(value: object, name: str) -> str:
    """Return a text as it can be stored, or raise Refused."""
    if not isinstance(value, str):
        raise Refused(f"`{name}` must be text, not {type(value).__name__}.", "Pass a string.")
    return clean(value)
