"""Progress bars, which go away at their end; nothing is shown without a terminal."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

from holdfast_cli.commands.render.screen import count, safe

if TYPE_CHECKING:
    from holdfast import Event, WorkResult
    from holdfast.types import CompactionResult
    from holdfast_cli.formats.importing import ImportProgress

_INDEXED = {"message": "messages", "record": "versions of records", "summary": "summaries"}
_shown: list[Progress] = []
_index_bars: list[Progress] = []
_index = ExitStack()
# Where the work is interrupted, no last event ends it.
atexit.register(_index.close)


@contextmanager
def _bar(label: str, *, timed: bool = False) -> Iterator[Progress]:
    """Show a bar; if it is `timed`, with the time that is left."""
    columns = [SpinnerColumn(), BarColumn(20), TextColumn(label)]
    if timed:
        columns += [TimeRemainingColumn(), TextColumn("left")]
    bar = Progress(
        *columns,
        TextColumn("{task.description}", style="dim", markup=False),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    _shown.append(bar)
    try:
        with bar:
            yield bar
    finally:
        _shown.remove(bar)


@contextmanager
def importing() -> Iterator[Callable[[ImportProgress], None]]:
    """Show how far an import has come; call the function that it returns with that."""
    files = "file {task.fields[told].file:,} of {task.fields[told].files:,}"
    with _bar(f"{files}, {{task.fields[told].messages:,}} messages", timed=True) as bar:
        task = bar.add_task("", total=1.0, visible=False)

        def show(told: ImportProgress) -> None:
            name = safe(Path(told.path).name)[:40]
            bar.update(task, completed=told.share, told=told, description=name, visible=True)

        yield show


def show_indexing(event: Event) -> None:
    """Show how far an index has come, from its first event to the last; not beside another bar."""
    told = event.indexing
    if told is None or (_shown and not _index_bars):
        return
    if not _index_bars and told.done < told.total:
        bar = _index.enter_context(_bar("Indexing {task.fields[what]}…", timed=True))
        bar.add_task("", total=told.total, what=f"{told.total:,} {_INDEXED[told.source]}")
        _index.callback(_index_bars.clear)
        _index_bars.append(bar)
    for bar in _index_bars:
        bar.update(bar.task_ids[0], completed=told.done)
    if told.done >= told.total:
        _index.close()


@contextmanager
def shrinking(tokens: int, target: int) -> Iterator[Callable[[CompactionResult], None]]:
    """Show how far a chat has shrunk from the tokens that it took towards its target.

    Call the function that it returns with the result so far.
    """
    with _bar("{task.fields[tokens]:,} tokens, towards {task.fields[target]:,}") as bar:
        task = bar.add_task("", total=max(1, tokens - target), tokens=tokens, target=target)
        yield lambda result: bar.update(
            task,
            completed=result.tokens_before - result.tokens_after,
            tokens=result.tokens_after,
            description=count(len(result.summaries), "summary", "summaries"),
        )


@contextmanager
def waiting(llm: str) -> Iterator[None]:
    """Show a spinner with the seconds since a model was asked."""
    with _bar("{task.elapsed:,.0f} s") as bar:
        bar.add_task(f"waiting for {safe(llm)}", total=None)
        yield


@contextmanager
def working(
    llm: str | None, run: int, limit: int | None, *, everyone: bool
) -> Iterator[Callable[[WorkResult], None]]:
    """Show the number of each job, and of all that are due: `run` of them have run, of at most `limit`.

    Call the function that it returns with what `Learning.work` tells: for everyone, it counts the due jobs of
    one user after the other.
    """
    with _bar("{task.fields[job]}  {task.elapsed:,.0f} s") as bar:
        task = bar.add_task(f"waiting for {safe(llm)}" if llm else "", total=None, job="looking for work")

        def show(told: WorkResult) -> None:
            nonlocal run
            run += told.count
            if told.noop:
                due = min(run + 1 + told.waiting, limit or sys.maxsize)
                job = f"job {run + 1:,} of {due:,}{' or more' if everyone else ''}"
                bar.reset(task, completed=run, total=due, job=job)

        yield show
