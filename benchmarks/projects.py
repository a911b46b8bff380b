"""What a recall over several spaces costs, against one over a single space of the same total size."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.clock import middle
from benchmarks.measurement import Measurement, SpeedLab, compared, fill
from holdfast.memory import Memory

_THREE = 1.6  # times that a recall over three spaces may take of one over one
_EMPTY = 1.1  # the same where the others are empty: what a machine that others use tells apart


def measure(lab: SpeedLab) -> Iterator[Measurement]:
    """Recall in a project, its user's space and a team's, and in one space with as much, in turns."""
    for size in lab.plan.sizes:
        lab.progress(f"asking three spaces of {size:,} messages together")
        path = lab.folder / f"projects-{size}.db"
        with Memory(path, durability="normal") as app:
            one, ada = app.scoped(user="one"), app.scoped(user="ada")
            shop = ada.scoped(project="shop", reads=["team:core"])
            bob = app.scoped(user="bob", project="shop", reads=["team:none", "project:none"])
            app.grants.add("team:core", to="user:ada")
            app.grants.add("team:none", to="user:bob")
            fill(one, lab.words, size)
            fill(bob, lab.words, size)
            for stream, handle in enumerate((shop, ada, app.scoped(team="core"))):
                fill(handle, lab.words, size // 3, stream=stream)
            yield from _compared(lab, size, one, shop, bob)


def _compared(
    lab: SpeedLab, size: int, one: Memory, three: Memory, beside_empty: Memory
) -> Iterator[Measurement]:
    single, several, alone = map(middle, lab.in_turns([one.recall, three.recall, beside_empty.recall]))
    for what, cost, limit in (
        (f"recall over 3 spaces, {size:,} messages together", several, _THREE),
        (f"recall in {size:,} messages beside 4 empty spaces", alone, _EMPTY),
    ):
        yield compared(what, cost, "one space", single, limit=limit if size >= 10_000 else None)
