"""`holdfast bench`: how well recall finds and how fast everything is, on this machine."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.options import Output
from holdfast.cli.screen import Screen, answer

if TYPE_CHECKING:
    from holdfast.bench.report import Report

Only = Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this part; may be repeated.")]
Folder = Annotated[
    Path | None, typer.Option(exists=True, file_okay=False, help="Where to measure; its disk counts.")
]


def recall(
    options: Output,
    *,
    data: Annotated[
        list[Path],
        typer.Argument(metavar="DATA", exists=True, help="LoCoMo or RealMem files, or folders of them."),
    ],
) -> None:
    """Measure how well recall finds, beside other searches."""
    from holdfast.bench.recall import run  # noqa: PLC0415 - loads numpy and more

    _show(run(data, progress=_progress), options)


def speed(
    options: Output,
    *,
    full: Annotated[
        bool, typer.Option("--full", help="At full size: a million messages, a thousand users.")
    ] = False,
    size: Annotated[
        list[int] | None, typer.Option(min=1, help="Measure recall among so many messages; may be repeated.")
    ] = None,
    only: Only = None,
    text: Annotated[
        Path | None, typer.Option(exists=True, metavar="FILE", help="A LoCoMo file to take words from.")
    ] = None,
    folder: Folder = None,
) -> None:
    """Measure the time and space that everything takes."""
    from holdfast.bench.speed import MEASUREMENTS, run  # noqa: PLC0415 - loads numpy and more

    _check_parts(only, MEASUREMENTS)
    report = run(sizes=size or None, full=full, text=text, folder=folder, only=only or (), progress=_progress)
    _show(report, options)


def context(
    options: Output,
    *,
    data: Annotated[
        list[Path],
        typer.Argument(
            metavar="DATA", exists=True, help="Logs of agent sessions and LoCoMo files, or folders of them."
        ),
    ],
    only: Only = None,
) -> None:
    """Measure what compaction takes, what prompts hold, and what summaries keep."""
    from holdfast.bench.context import PARTS, run  # noqa: PLC0415 - loads numpy and more

    _check_parts(only, PARTS)
    _show(run(data, only=only or (), progress=_progress), options)


def records(
    options: Output,
    *,
    quick: Annotated[
        bool, typer.Option("--quick", help="At small size, to see that it works; the bars are for full size.")
    ] = False,
    pairs: Annotated[
        list[Path] | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            metavar="FILE",
            help="Labelled pairs of texts for the merge; may be repeated.",
        ),
    ] = None,
    texts: Annotated[
        list[Path] | None,
        typer.Option(
            exists=True, dir_okay=False, metavar="FILE", help="Labelled texts for the guard; may be repeated."
        ),
    ] = None,
    only: Only = None,
    folder: Folder = None,
) -> None:
    """Measure what it takes to keep what is known, and how well texts are merged and guarded."""
    from holdfast.bench.knowing import PARTS, run  # noqa: PLC0415 - loads numpy and more

    _check_parts(only, PARTS)
    report = run(
        quick=quick, pairs=pairs or (), texts=texts or (), only=only or (), folder=folder, progress=_progress
    )
    _show(report, options)


def learn(
    options: Output,
    *,
    data: Annotated[
        list[Path],
        typer.Argument(metavar="DATA", exists=True, help="Logs of agent sessions, or folders of them."),
    ],
    only: Only = None,
    folder: Folder = None,
) -> None:
    """Measure what learning costs those who append, how fast it goes, and what it asks of models."""
    from holdfast.bench.learning import MEASUREMENTS, run  # noqa: PLC0415 - loads numpy and more

    _check_parts(only, MEASUREMENTS)
    _show(run(data, only=only or (), folder=folder, progress=_progress), options)


def agents(
    options: Output,
    *,
    only: Only = None,
    folder: Folder = None,
) -> None:
    """Measure how soon the MCP server is there, what a recall through it takes, and the tokens of the tools."""
    from holdfast.bench.agents import MEASUREMENTS, run  # noqa: PLC0415 - loads numpy and more

    _check_parts(only, MEASUREMENTS)
    _show(run(only=only or (), folder=folder, progress=_progress), options)


def _check_parts(only: Iterable[str] | None, known: Iterable[str]) -> None:
    unknown = [name for name in only or () if name not in known]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]!r} is none of {', '.join(known)}.", param_hint="--only")


def _progress(what: str) -> None:
    Screen(sys.stderr).say((what, "dim"))


def _show(report: "Report", options: Output) -> None:
    if options.json:
        answer(report.to_json())
        return
    screen = Screen()
    for table in report.tables():
        screen.say((table.title, "bold"))
        screen.table(table.columns, table.rows)
        screen.say("")
