"""How much is tried: in every run the same few cases, in a soak many random ones."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

SEED = os.environ.get("HOLDFAST_SOAK")
"""What the random cases of `make soak` are made from; None in every other run."""


def cases(few: int, many: int) -> int:
    """Return how many cases to try: few, or many in a soak."""
    return few if SEED is None else many


def run_machine(
    machine: type[RuleBasedStateMachine], examples: int, steps: int, ignored: list[HealthCheck]
) -> None:
    """Run a state machine so often, with so many steps; a failing run is shown as it is, and not shrunk."""
    run_state_machine_as_test(
        machine,
        settings=settings(
            phases=(Phase.explicit, Phase.generate),
            max_examples=examples,
            stateful_step_count=steps,
            suppress_health_check=ignored,
        ),
    )
