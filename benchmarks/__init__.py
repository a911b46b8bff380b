"""The measurements behind every number that Holdfast states; in a checkout: `python -m benchmarks -h`."""

from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
