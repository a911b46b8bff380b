"""The measurements behind every number that Holdfast states. They run in a checkout: see `python -m benchmarks -h`."""

from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
