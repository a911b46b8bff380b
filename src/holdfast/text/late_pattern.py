"""Regular expressions that are compiled when they are first used: most texts need few of them."""

from __future__ import annotations

import re
from functools import cache
from typing import cast


class LatePattern:
    """A regular expression that is compiled at the first use of one of its attributes."""

    def __init__(self, pattern: str, flags: re.RegexFlag) -> None:
        self._pattern, self._flags = pattern, flags

    def __getattr__(self, name: str) -> object:
        member: object = getattr(re.compile(self._pattern, self._flags), name)
        # From now on it is found at once.
        setattr(self, name, member)
        return member


@cache
def late_pattern(pattern: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """Return a regular expression, compiled at its first use; the same object for equal patterns."""
    return cast("re.Pattern[str]", LatePattern(pattern, flags))
