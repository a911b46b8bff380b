"""`python -m benchmarks`: how well recall finds and how fast everything is, on this machine."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.landed import FILE
from benchmarks.landed import save as keep
from benchmarks.report import Report
from holdfast_cli.commands.command import command
from holdfast_cli.commands.options import Output
from holdfast_cli.commands.render.screen import Screen, answer

Data = Annotated[
    list[Path],
    typer.Argument(metavar="DATA", exists=True, help="Files of data sets, sessions, or folders of them."),
]
Only = Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this part; may be repeated.")]
Folder = Annotated[
    Path | None, typer.Option(exists=True, file_okay=False, help="Where to measure; its disk counts.")
]
Full = Annotated[bool, typer.Option("--full", help="At full size: a million messages, a thousand users.")]
Sizes = Annotated[
    list[int] | None, typer.Option(min=1, help="Measure recall among so many messages; may be repeated.")
]


def recall(
    options: Output,
    *,
    data: Data,
    embed: Annotated[
        str | None, typer.Option(metavar="NAME", help="Find by this embedder as well; auto: $HOLDFAST_EMBED.")
    ] = None,
) -> None:
    """Measure how well recall finds, beside other searches.

    Reads LoCoMo, RealMem, sessions of agents with questions.jsonl, and sets of your own.

    Example: `python -m benchmarks recall locomo.json realmem/`
    """
    # No other part is loaded.
    from benchmarks.recall import run

    report = run(data, embed=embed, progress=_progress)
    _show(report, options)


def prompts(options: Output, *, data: Data) -> None:
    """Measure recall for questions among small talk and pastes, beside the questions alone.

    Example: `python -m benchmarks prompts locomo.json`
    """
    # No other part is loaded.
    from benchmarks.prompts import run

    _show(run(data, progress=_progress), options)


def side_by_side(
    options: Output,
    *,
    data: Annotated[
        Path | None,
        typer.Argument(metavar="DATA", exists=True, help="A data set to take words and questions from."),
    ] = None,
    full: Full = False,
    size: Sizes = None,
    only: Only = None,
    folder: Folder = None,
    url: Annotated[
        str, typer.Option(metavar="URL", help="Of a server of PostgreSQL; else one is started.")
    ] = "",
    save: Annotated[bool, typer.Option("--save", help="Keep the ratios in that file.")] = False,
    landed: Annotated[
        Path, typer.Option(dir_okay=False, metavar="FILE", help="The ratios that these are held against.")
    ] = FILE,
) -> None:
    """Measure recall, prompts and appends beside other searches and stores, in turns, as ratios.

    Ratios that are worse than those kept by more than a tenth are named; the exit code is then 3, unless
    another number of rounds or a load makes them doubtful.

    Example: `python -m benchmarks side-by-side locomo.json --only recall --size 100000`
    """
    # No other part is loaded.
    from benchmarks.speed import SIDE_BY_SIDE, run

    _check_parts(only, SIDE_BY_SIDE)
    if save and (only or size):
        raise typer.BadParameter("A part is not kept for the whole.", param_hint="--save")
    report = run(
        SIDE_BY_SIDE,
        sizes=size or None,
        full=full,
        text=data,
        folder=folder,
        only=only or (),
        url=url,
        kept=landed,
        progress=_progress,
    )
    _show(report, options)
    if save:
        keep(report.numbers, landed)
    elif report.numbers["worse"] and not report.numbers["doubts"]:
        raise typer.Exit(3)


def meaning(options: Output, *, data: Data) -> None:
    """Measure what an embedder adds to recall, from one that is noise to one that knows the answers.

    Example: `python -m benchmarks meaning locomo.json realmem/`
    """
    # No other part is loaded.
    from benchmarks.meaning import run

    _show(run(data, progress=_progress), options)


def calibration(options: Output, *, data: Data) -> None:
    """Measure whether the scores of hits are how likely they answer.

    Example: `python -m benchmarks calibration locomo.json`
    """
    # No other part is loaded.
    from benchmarks.calibration import run

    _show(run(data, progress=_progress), options)


def speed(
    options: Output,
    *,
    full: Full = False,
    size: Sizes = None,
    only: Only = None,
    folder: Folder = None,
) -> None:
    """Measure the time and space that everything else takes.

    Example: `python -m benchmarks speed --only import`
    """
    # No other part is loaded.
    from benchmarks.speed import MEASUREMENTS, run

    _check_parts(only, MEASUREMENTS)
    report = run(sizes=size or None, full=full, folder=folder, only=only or (), progress=_progress)
    _show(report, options)


def context(options: Output, *, data: Data, only: Only = None) -> None:
    """Measure what compaction takes, what prompts hold, and what summaries keep.

    Example: `python -m benchmarks context ~/.claude/projects locomo.json`
    """
    # No other part is loaded.
    from benchmarks.context import PARTS, run

    _check_parts(only, PARTS)
    _show(run(data, only=only or (), progress=_progress), options)


def records(
    options: Output,
    *,
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
    """Measure what it takes to keep what is known, and how well texts are merged and guarded.

    Example: `python -m benchmarks records --only guard`
    """
    # No other part is loaded.
    from benchmarks.records import PARTS, run

    _check_parts(only, PARTS)
    report = run(pairs=pairs or (), texts=texts or (), only=only or (), folder=folder, progress=_progress)
    _show(report, options)


def learn(
    options: Output,
    *,
    data: Data,
    only: Only = None,
    folder: Folder = None,
    llm: Annotated[
        str | None, typer.Option(metavar="NAME", help="Measure how well this model learns; DATA is a folder.")
    ] = None,
    half: Annotated[str, typer.Option(help="Of the labelled sessions: held_out or tune.")] = "held_out",
    price: Annotated[
        tuple[float, float] | None,
        typer.Option(metavar="PROMPTS ANSWERS", help="Dollars for a million tokens of each."),
    ] = None,
) -> None:
    """Measure how fast learning goes, and what it asks of models.

    With a model, how much of what it learns is worth keeping, how much of that it finds, whether it trusts
    orders that sessions plant, and what it takes. It needs the key of the model, and asks some hundred times.

    Example: `python -m benchmarks learn ~/.claude/projects`
    Example: `python -m benchmarks learn --llm openai:gpt-5-mini ../shared/data`
    """
    # No other part is loaded.
    from benchmarks import learning, taught

    _check_parts(only, taught.PARTS)
    if llm is None:
        _show(learning.run(data, folder=folder, progress=_progress), options)
        return
    if half not in ("held_out", "tune"):
        raise typer.BadParameter(f"{half!r} is none of held_out and tune.", param_hint="--half")
    done = taught.run(data[0], llm, half=half, only=only or (), price=price, progress=_progress)
    _show(done, options)


def _check_parts(only: Iterable[str] | None, known: Iterable[str]) -> None:
    unknown = [name for name in only or () if name not in known]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]!r} is none of {', '.join(known)}.", param_hint="--only")


def _progress(what: str) -> None:
    Screen(sys.stderr).say((what, "dim"))


def _show(report: Report, options: Output) -> None:
    if options.json:
        answer(report.numbers)
        return
    screen = Screen()
    for table in report.tables:
        screen.say((table.title, "bold"))
        if table.rows:
            screen.table(dict(zip(table.columns, zip(*table.rows, strict=True), strict=True)))
        screen.say("")


def hooks(
    options: Output,
    *,
    size: Sizes = None,
    rounds: Annotated[int, typer.Option(min=1, help="Call each hook so often.")] = 30,
    folder: Folder = None,
) -> None:
    """Measure how long a coding agent waits for each hook, from exec to answer.

    Example: `python -m benchmarks hooks --size 10000`
    """
    # No other part is loaded.
    from benchmarks.hooks import run

    _show(run(sizes=size or None, rounds=rounds, folder=folder, progress=_progress), options)


def _about() -> None:
    """Measure on this machine what the documentation states: each number names its command there.

    Run it in a checkout with the development extra (`make bench` installs it and measures all that needs no
    data). What is wanted of a number stands beside it; CPU time beside wall time, because other programs
    share the machine.
    """


app = typer.Typer(
    callback=_about,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _function in (recall, prompts, meaning, calibration, side_by_side, speed, context, records, learn, hooks):
    app.command()(command(_function))

if __name__ == "__main__":
    app(prog_name="python -m benchmarks")
