"""The progress of what takes a while, on a terminal."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as Bar

from holdfast.types import CompactionResult
from holdfast_cli.commands.render.screen import count, safe

_ENDINGS = {".json", ".jsonl", ".ndjson", ".zip"}


class _Shown:
    """A bar on stderr that goes away at its end; silent where that is no terminal."""

    def __init__(self, label: str) -> None:
        self._bar = Bar(
            SpinnerColumn(),
            BarColumn(),
            TextColumn(label),
            TextColumn("{task.description}", style="dim", markup=False),
            console=Console(stderr=True),
            transient=True,
            disable=not sys.stderr.isatty(),
        )

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()


class Progress(_Shown):
    """Show how much of the files has been read; silent where stderr is no terminal.

    Call it with the file that is being read and the number of messages found so far.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        super().__init__("{task.fields[messages]:,} messages")
        self._sizes = {} if self._bar.disable else {str(file): file.stat().st_size for file in _files(paths)}
        self._task = self._bar.add_task("", total=sum(self._sizes.values()) or None, messages=0)
        self._reading = ""

    def __call__(self, path: str, messages: int) -> None:
        """Show what is being read; a file counts as read when the next one begins."""
        done = 0
        if path != self._reading:
            done = self._sizes.pop(self._reading, 0)
            self._reading = path
        self._bar.update(self._task, advance=done, messages=messages, description=safe(Path(path).name)[:40])


class Shrinking(_Shown):
    """Show how far a chat has shrunk from the tokens that it took towards its target.

    Call it with the account so far.
    """

    def __init__(self, tokens: int, target: int) -> None:
        super().__init__("{task.fields[tokens]:,} tokens, towards {task.fields[target]:,}")
        self._task = self._bar.add_task("", total=max(1, tokens - target), tokens=tokens, target=target)

    def __call__(self, done: CompactionResult) -> None:
        """Show what the chat takes now."""
        self._bar.update(
            self._task,
            completed=done.tokens_before - done.tokens_after,
            tokens=done.tokens_after,
            description=count(len(done.summaries), "summary", "summaries"),
        )


class Thinking(_Shown):
    """Show that a model is waited for, and for how long already."""

    def __init__(self, llm: str) -> None:
        super().__init__("{task.elapsed:,.0f} s")
        self._bar.add_task(f"waiting for {safe(llm)}", total=None)


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        inside = path.rglob("*") if path.is_dir() else [path]
        yield from (file for file in inside if file.suffix.lower() in _ENDINGS and file.is_file())
