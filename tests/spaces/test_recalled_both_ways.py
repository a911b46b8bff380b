"""Recalls in several threads, over the same spaces in another order."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from threading import Barrier, Thread

import pytest

from holdfast import Memory

PROJECTS = [f"project:{name}" for name in "abcdefghijkl"]


@pytest.fixture
def hasty() -> Iterator[None]:
    """Let threads take turns within what is usually done in one."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def test_handles_that_read_the_same_the_other_way_around_wait_for_no_other(app: Memory, hasty: None) -> None:
    ada = app.scoped(user="ada")
    ada.scoped(project="a").remember("Deployments need two reviews")
    handles = 2 * [
        ada.scoped(project="a", reads=PROJECTS[1:]),
        ada.scoped(project="l", reads=PROJECTS[-2::-1]),
    ]
    counts: list[int] = []
    together = Barrier(len(handles))

    def often(handle: Memory) -> None:
        for _ in range(40):
            together.wait()
            counts.append(len(handle.recall("deployments")))

    threads = [Thread(target=often, args=(one,), daemon=True) for one in handles]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert counts == [1] * 160
