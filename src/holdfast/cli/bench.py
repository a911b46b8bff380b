"""`holdfast bench`: how well recall finds and how fast everything is, on this machine."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.options import Output
from holdfast.cli.screen import Screen, answer

if TYPE_CHECKING:
    from holdfast.bench.report import Report


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
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this part; may be repeated.")
    ] = None,
    text: Annotated[
        Path | None, typer.Option(exists=True, metavar="FILE", help="A LoCoMo file to take words from.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(exists=True, file_okay=False, help="Where to measure; its disk counts.")
    ] = None,
) -> None:
    """Measure the time and space that everything takes."""
    from holdfast.bench.speed import MEASUREMENTS, run  # noqa: PLC0415 - loads numpy and more

    unknown = [name for name in only or () if name not in MEASUREMENTS]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]!r} is none of {', '.join(MEASUREMENTS)}.", param_hint="--only")
    report = run(sizes=size or None, full=full, text=text, folder=folder, only=only or (), progress=_progress)
    _show(report, options)


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
