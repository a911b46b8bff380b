"""The kernel in C gives the hits that numpy gives, and reads nothing outside of what it is given."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hatch_build import SOURCE, compile_kernel
from holdfast import Memory
from holdfast.search.kernel import BUILT, kernel_in_use
from programs import run
from recall_corpora import QUERIES, Said, conversations, tell, texts
from soak import SEED, cases

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _is_built() -> None:
    if not BUILT:
        if os.environ.get("CI"):
            pytest.fail("the kernel was not built")
        pytest.skip("the kernel was not built: `make test` builds it where there is a compiler")


@contextmanager
def numpy_alone() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOLDFAST_KERNEL", "0")
        assert kernel_in_use() == "numpy"
        yield


def check(memory: Memory, queries: list[str], **filters: object) -> None:
    for query in queries:
        by_kernel = memory.recall(query, **filters)  # type: ignore[arg-type]  # a test's options
        with numpy_alone():
            assert list(by_kernel) == list(memory.recall(query, **filters))  # type: ignore[arg-type]  # the same


@pytest.mark.slow
@given(st.lists(conversations(30), min_size=3, max_size=3), st.lists(texts(), max_size=3), st.integers(1, 30))
@settings(max_examples=cases(10, 1_000))
def test_hits_are_those_of_numpy(spaces: list[list[Said]], asked: list[str], limit: int) -> None:
    with Memory(":memory:") as app:
        app.grants.add("team:core", to="user:ada", rights="write")
        ada = app.scoped(user="ada")
        reader = ada.scoped(project="shop", reads=["team:core"])
        for place, said in zip(
            (ada.scoped(project="shop"), ada, ada.scoped(team="core")), spaces, strict=True
        ):
            tell(place, said)
        check(reader, [*QUERIES, *asked], limit=limit)
        check(reader, [*QUERIES, *asked], limit=limit, roles="user", prefer="latest")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the sanitizers of gcc are loaded as on Linux")
def test_hostile_numbers_are_refused_and_nothing_is_read_outside(tmp_path: Path) -> None:
    kernel = tmp_path / "_kernel.abi3.so"
    assert compile_kernel(
        ROOT / SOURCE, kernel, "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"
    )
    library = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    )
    done = subprocess.run(
        [sys.executable, "-c", HOSTILE, str(tmp_path), str(cases(3_000, 20_000)), SEED or "7"],
        env={**os.environ, "LD_PRELOAD": library.stdout.strip(), "ASAN_OPTIONS": "detect_leaks=0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    refused, answered = map(int, done.stdout.split())
    assert refused
    assert answered


# Arrays of wrong lengths and types, and numbers of documents, blocks and neighbours that there are not.
HOSTILE = """
import sys, random
sys.path.insert(0, sys.argv[1])
import numpy as np, _kernel
random = random.Random(int(sys.argv[3]))
np.random.seed(random.randrange(2**32))
refused = answered = 0
WEIGHTS = np.array((0.9, 0.75, 0.5, 0.7, 0.5, 0.25, 0.3, 0.15, 1.5, 0.5, 0.2, 0.2, 0.1, 0.3, 2.0, 2.3))

def wrong(value):
    return random.choice([-1, 0, value + 1, 2**31, -2**62, 2**63 - 1]) if random.random() < 0.004 else value

def numbers(count, most, kind=np.int64):
    some = [wrong(random.randrange(max(most, 1))) for _ in range(max(0, count - (random.random() < 0.01)))]
    limits = np.iinfo(kind)
    return np.array([min(max(n, limits.min), limits.max) for n in some], kind)

def postings(most):
    docs = np.unique(numbers(random.randrange(12), most) + 1)
    return random.choice([None, (docs, np.random.rand(max(0, len(docs) - (random.random() < 0.01))) * 9)])

for _ in range(int(sys.argv[2])):
    last, more = random.randrange(1, random.choice((60, 60, 60, 60, 60, 900))), random.randrange(9)
    places, blocks = last + more, random.randrange(1, 5)
    counts = [wrong(n) for n in (last, places, blocks, 400, random.choice([0, 30]), 5, 3, 2)]
    if max(counts) > 2**32:
        counts = [min(n, 2**33) for n in counts]
    size = last + 1
    columns = [
        numbers(size, 50, np.uint32), numbers(size, 50, np.uint32), numbers(size, blocks),
        numbers(size, size), numbers(size, size), np.random.rand(size), numbers(places + 1, last) + 1,
        numbers(places + 1, 50, np.uint32), numbers(blocks, 500), numbers(size, 9), numbers(size, 99),
        numbers(size, 3, np.int32), numbers(size, 2, np.int32), numbers(size, 3, np.uint8),
        numbers(size, 2, np.uint8), numbers(3, 2, np.uint8), np.ones(2), numbers(random.randrange(9), size),
        WEIGHTS[: wrong(16)],
    ]
    terms = [
        (random.random() * 5, 0.6, postings(last), postings(places), postings(last))
        for _ in range(random.choice((1, 6, 70)))
    ]
    try:
        sums = _kernel.Sums(tuple(counts), tuple(columns[: wrong(19)]), terms)
        for later in (-1, 0, 1, 2, wrong(3)):
            some = np.random.rand(min(wrong(size), 999) % 999) < 0.8
            mask = random.choice([None, some, np.ones(size, bool)])
            bonus = random.choice([None, None, np.random.rand(size) - 0.5])
            limit = random.choice([0, 1, random.randrange(400), wrong(1)])
            _, count, found = sums.best(limit, later, wrong(random.randrange(4)), mask, bonus)
            assert len(found) == count * 8 * (13 + 2 * (len(terms) // 64 + 1))
        answered += 1
    except (ValueError, IndexError, OverflowError, MemoryError):
        refused += 1
print(refused, answered)
"""


def test_without_a_compiler_numpy_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    kernel = tmp_path / "_kernel.abi3.so"
    for compiler in ("false", str(tmp_path / "nothing")):
        kernel.write_text("built from an older source")
        monkeypatch.setenv("CC", compiler)
        assert not compile_kernel(ROOT / SOURCE, kernel)
        assert not kernel.exists()
        assert "recalls go by numpy" in capfd.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("built", ["", "; older.VERSION = 1"])
def test_a_kernel_of_another_version_is_not_used(built: str) -> None:
    program = (
        f"import sys, types; older = types.ModuleType('_kernel'){built}\n"
        "sys.modules['holdfast.search._kernel'] = older\n"
        "from holdfast.search.kernel import kernel_in_use; print(kernel_in_use())"
    )
    assert run(program).strip() == "numpy"
