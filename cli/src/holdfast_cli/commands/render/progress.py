"""Progress bars, which go away at their end; nothing is shown without a terminal."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

from holdfast.types import CompactionResult
from holdfast_cli.commands.render.screen import count, safe

_ENDINGS = {".json", ".jsonl", ".ndjson", ".zip"}


def _bar(label: str) -> Progress:
    return Progress(
        SpinnerColumn(),
        BarColumn(),
        TextColumn(label),
        TextColumn("{task.description}", style="dim", markup=False),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )


@contextmanager
def reading(paths: Sequence[Path]) -> Iterator[Callable[[str, int], None]]:
    """Show how much of some files has been read.

    Call the function that it returns with the path of a file and the number of messages so far.
    """
    with _bar("{task.fields[messages]:,} messages") as bar:
        sizes = {} if bar.disable else {str(file): file.stat().st_size for file in _files(paths)}
        task = bar.add_task("", total=sum(sizes.values()) or None, messages=0)
        last = ""

        def show(path: str, messages: int) -> None:
            # A file counts as read when the next one begins.
            nonlocal last
            advance = sizes.pop(last, 0) if path != last else 0
            last = path
            bar.update(task, advance=advance, messages=messages, description=safe(Path(path).name)[:40])

        yield show


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


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        inside = path.rglob("*") if path.is_dir() else [path]
        yield from (file for file in inside if file.suffix.lower() in _ENDINGS and file.is_file())
