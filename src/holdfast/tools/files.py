"""Memory as files: the commands of the Anthropic memory tool over records.

A file is a record of the kind "file": its path is the record's `target`, its content the record's text,
unchanged. So files have versions, and `changes`, `at`, `undo`, `rollback`, `erase` and `recall` work on them.
A folder exists as long as it has files.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from holdfast.contract import Reading
from holdfast.errors import Conflict, InvalidInput
from holdfast.kinds import Kind, table
from holdfast.records.draft import TRUSTED, allow, check_chat_id, content_of, policy, quarantine_reason, scan
from holdfast.records.view import View
from holdfast.safety import guard
from holdfast.store import record_changes, records
from holdfast.store.record_changes import Writing
from holdfast.store.records import NOW, RecordFilter
from holdfast.text.clean import clean
from holdfast.tools import file_commands
from holdfast.tools.file_commands import ROOT, FileCommandError, is_below, resolve
from holdfast.tools.memory_internals import internals_of, unwrap
from holdfast.types import Record, Writer
from holdfast.types.acting import check_writer, current

KIND = "file"
TOOL: Mapping[str, str] = {"type": "memory_20250818", "name": "memory"}  # the tool in Anthropic's API
_ATTEMPTS = 1_000  # the optimistic-retry limit
_CUT = "\nNote: a credential was cut out of it, as none is kept. View the file before you edit it again."
_WAITING = "its text looks like an order to a model and waits for the user to release or discard it."
Tree = Mapping[str, Record]  # the files of an agent by their paths
_COMMANDS = ("view", "create", "str_replace", "insert", "delete", "rename")


class _Edit(NamedTuple):
    """One version to write: a record, the version before, and the action."""

    record: Record
    before: Record | None
    action: str
    why: str = ""


class _Plan(NamedTuple):
    """The edits of a command, and its answer."""

    edits: Sequence[_Edit]
    answer: str


class Files:
    """The files of an agent, below `/memories`.

    Each handle has a tree of its own: that of its tenant, user and agent. Over a view of `Memory.at` it shows
    the tree as of then. Commands answer with the strings of the Anthropic SDK, and one more line if a
    credential was cut out. A text by an agent that looks like an instruction to a model is in quarantine, not
    in the tree, until the user releases it (`memory.quarantine.release`), and the answer says so. `recall`
    finds files; prompts show only those that were recalled.

    The tree of a `NullMemory` stays empty. Each command reads the whole tree, which takes 20 ms for a
    thousand files of 3,000 characters.

    >>> files = Files(memory)
    >>> files.create("/memories/plan.md", "Berlin in September")
    'File created successfully at: /memories/plan.md'

    Args:
        memory: the `Memory` that stores the files, or a view of it.
        by: the writer; None for the one of `acting_as`, else the agent.

    """

    def __init__(self, memory: Reading, *, by: Writer | None = None) -> None:
        self._memory = unwrap(memory)
        if not isinstance(self._memory, View) and not hasattr(self._memory, "quarantine"):
            what = f"`memory` is of the type {type(memory).__name__!r}."
            raise InvalidInput(what, "Pass a Memory, or the view that its `at` returns.")
        self._by = by

    def paths(self) -> list[str]:
        """List the paths of all files, sorted."""
        return sorted(self._tree())

    def read(self, path: str) -> str:
        """Return the content of a file.

        Raises:
            FileCommandError: there is no such file.

        """
        return self._file(self._tree(), resolve(path)).text

    def call(self, command: object) -> str:
        """Run a command of a model, a dict with "command" and arguments of that method; return the answer.

        Raises:
            FileCommandError: there is no such command, an argument is missing, or the method raises it.

        """
        arguments = command if isinstance(command, Mapping) else {}
        name = arguments.get("command")
        if not isinstance(name, str) or name not in _COMMANDS:
            what = f"Unknown command. Use one of {', '.join(_COMMANDS)}."
            raise FileCommandError(what, "Correct `command`.")
        # Each command has the name of its method.
        method: Callable[..., str] = getattr(self, name)
        known = inspect.signature(method).parameters
        missing = [key for key in known if key not in arguments and known[key].default is known[key].empty]
        if missing:
            needs = " and ".join(f"`{key}`" for key in missing)
            raise FileCommandError(f"The command `{name}` needs {needs}.", "Pass it.")
        return method(**{key: arguments[key] for key in known if key in arguments})

    def view(self, path: str, view_range: Sequence[int] | None = None) -> str:
        """Return a file with line numbers, or the list of a folder, two levels deep, without hidden files.

        Args:
            path: of the file or the folder.
            view_range: the first and the last line to show, counted from 1; -1 is the last line.

        Raises:
            FileCommandError: there is no such path, or the range is not two whole numbers.

        """
        place, tree = resolve(path), self._tree()
        if place in tree:
            return file_commands.number_file(place, tree[place].text, view_range)
        inside = {file: len(tree[file].text.encode("utf-8")) for file in tree if is_below(file, place)}
        if place != ROOT and not inside:
            raise self._not_found(place)
        return file_commands.listing(place, inside)

    def create(self, path: str, file_text: str) -> str:
        """Create a file.

        Raises:
            FileCommandError: the path exists, or is below a file, or the text is too long.
            Denied: this writer may not write files.

        """
        place, text = resolve(path), _text(file_text, "file_text")

        def plan(tree: Tree, by: Writer) -> _Plan:
            if place in tree or _is_folder(tree, place):
                raise FileCommandError(f"File {place} already exists", "Change it, or choose another path.")
            _check_new(tree, place, by)
            draft = Record("", KIND, text, target=place, agent=self._memory.scope.agent)
            answer = f"File created successfully at: {place}"
            return self._plan_write(by, place, draft, None, lambda _: answer)

        return self._write(plan)

    def str_replace(self, path: str, old_str: str, new_str: str) -> str:
        """Replace a text that occurs once in the file.

        Raises:
            FileCommandError: there is no such file, or the text occurs more often or not at all.
            Denied: this writer may not change files.

        """
        place, old, new = resolve(path), _text(old_str, "old_str"), _text(new_str, "new_str")
        return self._edit(
            place,
            lambda before: file_commands.replace_text(place, before, old, new),
            lambda before, after: file_commands.snippet(after, before.find(old)),
        )

    def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        """Insert a text after a line of a file, 0 for the beginning.

        Raises:
            FileCommandError: there is no such file or line.
            Denied: this writer may not change files.

        """
        place, text = resolve(path), _text(insert_text, "insert_text")
        return self._edit(
            place,
            lambda before: file_commands.insert_text(before, insert_line, text),
            lambda _before, _after: f"The file {place} has been edited.",
        )

    def _edit(self, place: str, change: Callable[[str], str], answer: Callable[[str, str], str]) -> str:
        """Change the text of a file, and answer by its text before and after."""

        def plan(tree: Tree, by: Writer) -> _Plan:
            before = self._file(tree, place)
            draft = replace(before, text=change(before.text), target=place)
            return self._plan_write(by, place, draft, before, lambda text: answer(before.text, text))

        return self._write(plan)

    def delete(self, path: str) -> str:
        """Delete a file, or a folder with its files. They stay in the history; `Memory.undo` restores them.

        Raises:
            FileCommandError: the path does not exist, or is `/memories` itself.
            Denied: this writer may not remove files.

        """
        place = resolve(path)
        if place == ROOT:
            raise FileCommandError(f"Cannot delete the {ROOT} directory itself", "Delete what lies in it.")

        def plan(tree: Tree, by: Writer) -> _Plan:
            gone = _at_or_below(tree, place)
            if not gone:
                raise FileCommandError(
                    f"The path {place} does not exist", "View the folder for what is there."
                )
            return _Plan(self._plan_deletion(gone, by), f"Successfully deleted {place}")

        return self._write(plan)

    def rename(self, old_path: str, new_path: str) -> str:
        """Move a file or a folder to another path. Files keep their ids and their history.

        Raises:
            FileCommandError: the old path does not exist, the new one does, or is below the old one.
            Denied: this writer may not change files.

        """
        old, new = resolve(old_path), resolve(new_path)
        if old == ROOT:
            raise FileCommandError(f"Cannot rename the {ROOT} directory itself", "Rename what lies in it.")

        def plan(tree: Tree, by: Writer) -> _Plan:
            if new == ROOT or _at_or_below(tree, new):
                raise FileCommandError(f"The destination {new} already exists", "Choose another path.")
            moved = _at_or_below(tree, old)
            if not moved:
                raise FileCommandError(f"The path {old} does not exist", "View the folder for what is there.")
            if is_below(new, old):
                raise FileCommandError(f"Cannot rename {old} to a path within itself", "Choose another path.")
            _check_new(tree, new, by)
            allow(self._rules, by, "change")
            edits = []
            for path, before in moved.items():
                after = replace(before, target=resolve(new + path.removeprefix(old)))
                edits.append(_Edit(after, before, "rename", f"from {path}"))
            return _Plan(edits, f"Successfully renamed {old} to {new}")

        return self._write(plan)

    def clear(self) -> str:
        """Delete all files of this tree. They stay in the history; `Memory.undo` restores them.

        Raises:
            Denied: this writer may not remove files.

        """
        return self._write(lambda tree, by: _Plan(self._plan_deletion(tree, by), "All memory cleared"))

    def _tree(self) -> Tree:
        return _tree_of(self._memory.records(kind=KIND), self._memory.scope.agent)

    def _file(self, tree: Tree, place: str) -> Record:
        """Return the file of a path, or raise FileCommandError."""
        if place in tree:
            return tree[place]
        if _is_folder(tree, place):
            raise FileCommandError(f"The path {place} is not a file.", "View it, and choose a file in it.")
        raise self._not_found(place)

    def _not_found(self, place: str) -> FileCommandError:
        answer = f"The path {place} does not exist. Please provide a valid path."
        if self._waiting(place):
            answer += f" A file was to be made there: {_WAITING}"
        return FileCommandError(answer, "View the folder for what is there.")

    def _waiting(self, place: str) -> list[Record]:
        """Return the records in quarantine for a path."""
        key = (KIND, place, self._memory.scope.agent)
        held = list(self._memory.quarantine) if self._is_writable else []
        return [record for record in held if (record.kind, record.target, record.agent) == key]

    @property
    def _is_writable(self) -> bool:
        """Whether this is a memory rather than a view."""
        return hasattr(self._memory, "quarantine")

    @property
    def _rules(self) -> Kind:
        internals = internals_of(self._memory)
        return policy(internals.kinds if internals else table(), KIND)

    def _plan_deletion(self, gone: Tree, by: Writer) -> list[_Edit]:
        allow(self._rules, by, "remove")
        return [_Edit(replace(file, retracted=True), file, "retract") for file in gone.values()]

    def _plan_write(
        self, by: Writer, place: str, draft: Record, before: Record | None, answer: Callable[[str], str]
    ) -> _Plan:
        """Plan a version of a file with a new text, or a record in quarantine."""
        rules = self._rules
        allow(rules, by, "change" if before else "add")
        if len(draft.text) > rules.longest:
            what = (
                f"The file would have {len(draft.text):,} characters; a file has at most {rules.longest:,}."
            )
            raise FileCommandError(what, "Shorten it, or split it into several files.")
        record = replace(_sign(draft, by), chat=self._chat() or draft.chat)
        if record.trust == "quarantined":
            aside = replace(record, id="", replaces=before.id if before else "")
            key = (aside.text, aside.replaces)
            is_new = key not in [(record.text, record.replaces) for record in self._waiting(draft.target)]
            edits = [_Edit(aside, None, "quarantine", quarantine_reason(record))] if is_new else []
            return _Plan(edits, f"The file {place} was not written: {_WAITING}")
        is_changed = before is None or content_of(record) != content_of(before)
        edits = [_Edit(record, before, "replace" if before else "add")] if is_changed else []
        return _Plan(edits, answer(record.text) + (_CUT if record.text != draft.text else ""))

    def _chat(self) -> str:
        """Return the chat of `acting_as`, after a check that the id of a new one has no credential."""
        chat, internals = current().chat, internals_of(self._memory)
        if not internals:
            return chat
        return check_chat_id(internals.database_of(self._memory.scope), self._memory.scope, chat)

    def _write(self, plan: Callable[[Tree, Writer], _Plan]) -> str:
        """Plan on the tree, and write in one transaction if it has not changed; else plan again.

        Texts are scanned while planning, before the transaction, which locks the space.
        """
        if not self._is_writable:
            raise FileCommandError("What was known earlier cannot be changed.", "Use the memory itself.")
        scope, internals = self._memory.scope, internals_of(self._memory)
        by = current().source or "agent" if self._by is None else check_writer(self._by)
        if internals is None:
            return plan({}, by).answer
        database = internals.database_of(scope)
        for _ in range(_ATTEMPTS):
            seen, tree = records.space_state(database, scope.space), self._tree()
            edits, answer = plan(tree, by)
            if not edits:
                return answer
            with record_changes.writing(database, scope.space, internals.now()) as changes:
                if changes.seen != seen and _versions(_read_tree(changes, scope.agent)) != _versions(tree):
                    # Another writer changed or erased files in between.
                    continue
                written = [
                    changes.put(record, before, by=by, action=action, why=why)
                    for record, before, action, why in edits
                ]
            internals.events.tell_of(scope, written)
            return answer
        raise Conflict("Others keep changing the files.", "Try again.")


def _tree_of(records: Iterable[Record], agent: str) -> Tree:
    """Return the files of an agent by their paths.

    The name of a file without a path is its id. A rollback can leave two files with the same path: the one
    written last has it, and the id of the other follows its path.
    """
    tree: dict[str, Record] = {}
    for record in sorted((file for file in records if file.agent == agent), key=lambda file: -file.version):
        path = record.target or f"{ROOT}/{record.id}"
        tree[path if path not in tree else f"{path}~{record.id}"] = record
    return tree


def _versions(tree: Tree) -> set[int]:
    """Return the versions of the files; trees of one user with the same versions are equal."""
    return {record.version for record in tree.values()}


def _is_folder(tree: Tree, place: str) -> bool:
    """Return whether a path is that of a folder: the root, or one in which files lie."""
    return place == ROOT or any(is_below(path, place) for path in tree)


def _at_or_below(tree: Tree, place: str) -> dict[str, Record]:
    """Return the file of a path, or the files that lie below it, in the order of their paths."""
    return {path: tree[path] for path in sorted(tree) if path == place or is_below(path, place)}


def _read_tree(changes: Writing, agent: str) -> Tree:
    wanted = RecordFilter(kinds=(KIND,), agents=(agent,))
    return _tree_of(records.read(changes.tx, changes.space, NOW.version, wanted), agent)


def _check_new(tree: Tree, place: str, by: Writer) -> None:
    """Raise FileCommandError unless a file may have a path, which every listing shows to models."""
    for path in tree:
        if is_below(place, path):
            raise FileCommandError(f"The path {path} is not a directory.", "Choose another path.")
    parts = (place.removeprefix(ROOT), *place.split("/")[2:])
    findings = [finding for part in parts for finding in guard.scan(part)]
    if any(finding.kind == "secret" for finding in findings):
        raise FileCommandError(
            "The path holds a credential.", "Choose another path: credentials are not kept."
        )
    if guard.has_orders(findings) and by not in TRUSTED:
        raise FileCommandError("The path looks like an order to a model.", "Choose another path.")


def _sign(draft: Record, by: Writer) -> Record:
    """Return a draft with its text scanned like that of any record, but with the white space around it."""
    text = draft.text
    if not text.strip():
        return replace(draft, by=by, flags=(), trust="trusted")
    scanned = scan(replace(draft, text=text.strip()), by)
    before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    return replace(scanned, text=f"{before}{scanned.text}{after}")


def _text(value: object, name: str) -> str:
    """Return a text cleaned for storing, or raise FileCommandError."""
    if not isinstance(value, str):
        raise FileCommandError(f"`{name}` must be text, not {type(value).__name__}.", "Pass a string.")
    return clean(value)
