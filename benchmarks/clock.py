"""Times: CPU beside wall, medians of repeats. On a machine that others use, read the CPU time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median


@dataclass(slots=True)
class Cost:
    """Hold what something took, in milliseconds: CPU time of the process (with system time), wall time."""

    cpu: float = 0.0
    wall: float = 0.0

    def __truediv__(self, count: float) -> Cost:
        return Cost(self.cpu / count, self.wall / count)

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.cpu - other.cpu, self.wall - other.wall)


@contextmanager
def timed() -> Iterator[Cost]:
    """Time a block; the cost is filled in when it ends."""
    cost = Cost()
    wall, cpu = time.perf_counter_ns(), time.process_time_ns()
    yield cost
    cost.cpu = (time.process_time_ns() - cpu) / 1e6
    cost.wall = (time.perf_counter_ns() - wall) / 1e6


def cost_of(work: Callable[[], object]) -> Cost:
    """Time one call."""
    with timed() as cost:
        work()
    return cost


def middle(costs: Sequence[Cost]) -> Cost:
    """Return the median of each clock."""
    return Cost(median(one.cpu for one in costs), median(one.wall for one in costs))


def high(costs: Sequence[Cost], share: float = 0.95) -> Cost:
    """Return the cost that `share` of all stay within, on each clock."""
    place = min(len(costs) - 1, int(share * len(costs)))
    return Cost(sorted(one.cpu for one in costs)[place], sorted(one.wall for one in costs)[place])


def each(
    contenders: Sequence[Callable[[str], object]], inputs: Sequence[str], repeats: int
) -> list[list[Cost]]:
    """Time every contender on every input, and give each its median cost per input.

    They take turns, each with all inputs at a time: after every single one, each would find the processor's
    caches full of what the other needs, which happens to no program.
    """
    taken: list[list[list[Cost]]] = [[[] for _ in inputs] for _ in contenders]
    for _ in range(repeats):
        for contender, per_input in zip(contenders, taken, strict=True):
            for value, costs in zip(inputs, per_input, strict=True):
                with timed() as cost:
                    contender(value)
                costs.append(cost)
    return [[middle(costs) for costs in per_input] for per_input in taken]
