"""The report of an import: counts, and what was left out and why."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from holdfast_cli.formats.files import SAVE
from holdfast_cli.formats.import_items import Skip
from holdfast_cli.formats.record_edits import RecordEdit

_LISTED = 10  # line numbers that a report lists for one reason
_REASONS = 1000  # reasons that a report lists


@dataclass(frozen=True, slots=True)
class Skipped:
    """Lines or messages of a file that were left out for a reason: their number, and the first of them.

    `lines` are line numbers of JSONL, positions in a JSON array, or 0 for the whole file. `problem` is True
    if they should have been messages, and False for what a format has beside its messages.
    """

    path: str
    reason: str
    count: int
    lines: tuple[int, ...]
    problem: bool


@dataclass(slots=True)
class ImportReport:
    """The result of an import: chats, messages `added` and already `present`, and messages by format."""

    sessions: int = 0
    added: int = 0
    present: int = 0
    skipped: tuple[Skipped, ...] = ()
    formats: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    records: int = 0
    """The number of records that were added, or changed as their source was."""
    records_present: int = 0
    """The number of records that had been imported before."""
    rows: Counter[str] = field(default_factory=Counter)
    """The rows added from an export of everything, by table."""
    renumbered: int = 0
    """The number of its versions of records that have other numbers here, since there were some already."""
    unchanged: int = 0
    """The number of files that were not read, because they were imported before and have not changed."""
    edits: tuple[RecordEdit, ...] = ()
    """The changes of edited exports of records, and the conflicts."""
    projects: Counter[str] = field(default_factory=Counter)
    """The number of messages added to projects of the user, by their names."""
    ignored: Counter[str] = field(default_factory=Counter)
    """The number of files with something else, by the endings of their names."""

    @property
    def problems(self) -> tuple[Skipped, ...]:
        """The entries that should have been imported and were not."""
        return tuple(skipped for skipped in self.skipped if skipped.problem)


class Skips:
    """The items left out, by file and reason."""

    def __init__(self) -> None:
        self._by_reason: dict[tuple[str, str, bool], Skipped] = {}

    def add(self, path: str, skips: Iterable[Skip]) -> None:
        """Count what was left out of a file."""
        for skip in skips:
            self.count(Skipped(path, skip.reason, 1, (skip.line,), skip.problem))

    def count(self, more: Skipped) -> None:
        """Add lines to those of the same file and reason."""
        key = (more.path, more.reason, more.problem)
        if key not in self._by_reason and len(self._by_reason) >= _REASONS:
            key = (more.path, "for further reasons", more.problem)
        before = self._by_reason.get(key) or Skipped(more.path, key[1], 0, (), more.problem)
        lines = (*before.lines, *more.lines)[:_LISTED]
        self._by_reason[key] = replace(before, count=before.count + more.count, lines=lines)

    def all(self) -> tuple[Skipped, ...]:
        """Return the items left out so far."""
        return tuple(self._by_reason.values())


def unreadable(format: str, skipped: tuple[Skipped, ...]) -> tuple[Skipped, ...]:
    """Return the skips of a file without results, its unreadable rows joined under the first reason."""
    rows = [skip for skip in skipped if skip.problem and 0 not in skip.lines and SAVE not in skip.reason]
    if not rows or (len(rows) == 1 and len(skipped) > 1):
        return skipped
    first = min(rows, key=lambda skip: skip.lines)
    reason = f"recognised as {format}, but no row can be read, the first since: {first.reason}"
    summary = replace(first, reason=reason, count=sum(skip.count for skip in rows))
    return (*(skip for skip in skipped if skip not in rows), summary)
