from collections.abc import Sequence
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.search.columns import Floats, Mask, Numbers

_Postings: TypeAlias = tuple[Numbers, Floats] | None

VERSION: int

class Sums:
    def __new__(
        cls,
        numbers: tuple[int, ...],
        columns: tuple[NDArray[np.generic], ...],
        terms: Sequence[tuple[float, float, _Postings, _Postings, _Postings]],
    ) -> Self: ...
    def best(
        self, limit: int, later: int, span: int, mask: Mask | None, bonus: Floats | None, /
    ) -> tuple[float, int, bytearray]: ...
