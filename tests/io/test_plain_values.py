"""Serialized values of other programs, decoded without constructing anything."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.io.msgpack import Extension, unpack

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(), inner, max_size=20),
    max_leaves=40,
)


@given(VALUES)
def test_messagepack_is_read_as_its_library_writes_it(value: object) -> None:
    ormsgpack = pytest.importorskip("ormsgpack")
    assert unpack(ormsgpack.packb(value)) == value


def test_long_values_and_extensions_of_messagepack() -> None:
    ormsgpack = pytest.importorskip("ormsgpack")
    for size in (1, 2, 3, 4, 8, 16, 40, 300, 70_000):
        given = [b"x" * size, "y" * size, [0] * size, {str(n): n for n in range(size)}]
        assert unpack(ormsgpack.packb(given)) == given
        assert unpack(ormsgpack.packb(ormsgpack.Ext(5, b"z" * size))) == Extension(5, b"z" * size)


def test_anything_else_is_refused() -> None:
    for data in (b"", b"\xc1", b"\x92\x01", b"\xdb\xff\xff\xff\xff", b"\x01\x02", b"\x91" * 1_000):
        with pytest.raises(ValueError, match=r"It is|There is"):
            unpack(data)
    rng = random.Random(1)
    for _ in range(2_000):
        data = rng.randbytes(rng.randrange(40))
        try:
            unpack(data)
        except ValueError:
            continue
