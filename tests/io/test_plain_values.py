"""Serialized values of other programs, decoded without constructing anything."""

from __future__ import annotations

import pickle
import random
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.io.msgpack import Extension, unpack
from holdfast.io.pickled import Computed, plain

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(), inner, max_size=20),
    max_leaves=40,
)


@given(VALUES, st.sampled_from([2, 3, 4, 5]))
def test_plain_data_is_read_as_it_was_pickled(value: object, protocol: int) -> None:
    assert plain(pickle.dumps(value, protocol=protocol)) == value


def test_objects_are_their_state_and_calls_are_names() -> None:
    class_name, when = "tests.Any", datetime(2026, 1, 2, tzinfo=UTC)
    found = plain(pickle.dumps({"path": Path("x"), "when": when, "name": class_name}))
    assert isinstance(found, dict)
    assert isinstance(found["path"], Computed)
    assert isinstance(found["when"], Computed)
    assert found["name"] == class_name


@pytest.mark.slow
def test_pickles_that_grow_or_do_not_end_are_refused() -> None:
    laughs: list[object] = ["ha"]
    for _ in range(60):
        laughs = [laughs, laughs]
    endless: list[object] = []
    endless.append(endless)
    for value in (laughs, endless):
        with pytest.raises(ValueError, match="It is"):
            plain(pickle.dumps(value))
    for data in (
        b"",
        b".",
        b"\x80\x04",
        b"(",
        b"\x80\x04h\x00.",
        b"cos\nsystem\n(S'x'\ntR.",
        b"\x80\x04]]s.",
    ):
        with pytest.raises(ValueError, match=r"."):
            plain(data)


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
        for read in (unpack, plain):
            try:
                read(data)
            except ValueError:
                continue
