"""Regular expressions that are compiled when they are first used: most texts need few of them."""

from __future__ import annotations

import re
from functools import cache
from typing import cast


class LatePattern:
    """A pattern that is compiled when something of it is first asked for."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern

    def __getattr__(self, name: str) -> object:
        found: object = getattr(re.compile(self._pattern), name)
        # From now on it is found at once.
        setattr(self, name, found)
        return found


@cache
def late_pattern(pattern: str) -> re.Pattern[str]:
    """Return a regular expression that is compiled when it is first used; the same one for the same text."""
    return cast("re.Pattern[str]", LatePattern(pattern))
