"""For those who write a provider: the suite that checks any, and a small provider to read.

In pytest, four lines:

>>> from holdfast.testing import Conformance, MinimalProvider
>>> class TestMine(Conformance):
...     def make(self) -> MinimalProvider:
...         return MinimalProvider()

Without pytest, `print(check(MinimalProvider))`, or `python -m holdfast.testing package.module:factory`.
"""

from __future__ import annotations

from holdfast.testing.conformance import Conformance, Report, Result, check
from holdfast.testing.minimal import MinimalProvider

__all__ = ["Conformance", "MinimalProvider", "Report", "Result", "check"]
