from collections.abc import Sequence
from typing import Self, TypeAlias

from holdfast.search.columns import Floats, Mask, Numbers

_Postings: TypeAlias = tuple[Numbers, Floats] | None

VERSION: int

class Sums:
    def __new__(
        cls,
        numbers: tuple[int, ...],
        columns: tuple[Numbers | Floats, ...],
        weights: tuple[float, ...],
        terms: Sequence[tuple[float, float, _Postings, _Postings, _Postings]],
    ) -> Self: ...
    def ceiling(self) -> float: ...
    def likely(self, count: int, mask: Mask | None, /) -> bytearray: ...
    def reach(self, least: float, jumps: Numbers, /) -> tuple[bytearray, bytearray]: ...
    def of(self, docs: Numbers, /) -> tuple[bytearray, bytearray]: ...
