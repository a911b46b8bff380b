"""Writing from several handles, threads and processes at once: nothing is lost, nothing is half done."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest

import programs
from holdfast import Conflict, InvalidInput, Kind, Memory, Record
from record_lists import calls

T = TypeVar("T")


def at_once(works: Sequence[Callable[[], T]]) -> list[T | Exception]:
    """Do all works at the same time, each in a thread, and give what came of them."""
    together = threading.Barrier(len(works))

    def one(work: Callable[[], T]) -> T | Exception:
        together.wait()
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - it is what came of it
            return error

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(one, works))


def check_history(memory: Memory, versions: int) -> None:
    """Check that versions are 1 to n, and that each change of a record begins where the one before ended."""
    changes = memory.changes()[::-1]
    assert [change.version for change in changes] == [*range(1, versions + 1)]
    assert memory.version() == versions
    texts: dict[str, str | None] = {}
    for change in changes:
        assert change.before == texts.get(change.id)
        texts[change.id] = change.after
    assert {record.id: record.text for record in memory.records()} == {
        identity: text for identity, text in texts.items() if text is not None
    }


# One after the other


def test_who_did_not_see_the_newest_version_gets_a_conflict(reopen: Callable[[], Memory]) -> None:
    one, other = reopen(), reopen()
    seen = one.remember("Ada runs.", "profile", expected_version=0).version
    newer = other.remember("Ada swims.", "profile", expected_version=seen)
    for attempt in calls(
        lambda: one.remember("Ada rests.", "profile", expected_version=seen),
        lambda: one.remember("Ada rests.", "profile", expected_version=0),
        lambda: one.replace(newer.id, "Ada rests.", expected_version=seen),
    ):
        with pytest.raises(Conflict, match=f"version {newer.version}.*not"):
            attempt()
    assert (one.get("profile"), one.version()) == (newer, newer.version)
    assert one.remember("Ada rests.", "profile", expected_version=newer.version).text == "Ada rests."


# Threads


def test_with_expected_versions_no_update_is_lost(reopen: Callable[[], Memory]) -> None:
    handles = [reopen(), reopen()]
    handles[0].remember("0", "profile")

    def count_to_ten(memory: Memory) -> Callable[[], int]:
        def work() -> int:
            done = 0
            while done < 10:
                seen = memory.get("profile")
                assert seen is not None
                try:
                    memory.remember(str(int(seen.text) + 1), "profile", expected_version=seen.version)
                except Conflict:
                    continue
                done += 1
            return done

        return work

    assert at_once([count_to_ten(handle) for handle in handles]) == [10, 10]
    assert [change.after for change in handles[0].changes()[::-1]] == [str(n) for n in range(21)]


def test_a_cap_holds_for_those_who_write_at_once(location: str) -> None:
    def add(number: int) -> Callable[[], Record]:
        return lambda: memory.remember(f"{number}" * 1_000, "clue")

    with Memory(location, user="ada", kinds=[Kind("clue", cap={"": 4_000})]) as memory:
        outcomes = at_once([add(n) for n in range(8)])
        assert len([one for one in outcomes if isinstance(one, Record)]) == 4
        assert len([one for one in outcomes if isinstance(one, InvalidInput)]) == 4
        check_history(memory, 4)


def test_the_same_fact_said_at_once_is_one_record_with_all_the_evidence(memory: Memory) -> None:
    outcomes = at_once([lambda: memory.remember("The user lives in Berlin")] * 8)
    assert {type(one) for one in outcomes} == {Record}
    assert [(one.text, one.evidence) for one in memory.records()] == [("The user lives in Berlin", 8)]


def test_uses_of_a_note_at_once_are_all_counted(memory: Memory) -> None:
    note = memory.chat("monday").remember("the door is red", "note")
    at_once([lambda: memory.get(note.id)] * 10)
    assert [one.uses for one in memory.records()] == [10]


# Processes

ADD = """
import sys
from holdfast import Memory
memory = Memory(sys.argv[1], user="ada")
memory.version()
print("ready", flush=True)
input()
for n in range(10):
    memory.remember(f"number {n} of process {sys.argv[2]}", merge=False)
    memory.remember(f"Ada, {n} of {sys.argv[2]}", "profile")
memory.close()
"""


@pytest.mark.slow
def test_processes_that_write_at_once_lose_nothing(shared_location: str) -> None:
    programs.run_together(ADD, [(shared_location, process) for process in "abc"])
    with Memory(shared_location, user="ada") as memory:
        check_history(memory, 60)
        for process in "abc":
            own = [one.text for one in memory.records(text=f"of process {process}")]
            assert own == [f"number {n} of process {process}" for n in range(10)]
        assert len(memory.changes(kind="profile")) == 30
        assert len(memory.records(kind="profile")) == 1


SWAP = """
import sys
from holdfast import Conflict, Memory
memory = Memory(sys.argv[1], user="ada")
seen = memory.get("profile").version
print("ready", flush=True)
input()
try:
    print(memory.remember(f"Ada, by {sys.argv[2]}", "profile", expected_version=seen).text)
except Conflict:
    print("Conflict")
memory.close()
"""


def test_of_processes_that_expect_the_same_version_one_writes(shared_location: str) -> None:
    with Memory(shared_location, user="ada") as memory:
        memory.remember("Ada runs.", "profile")
    said = [
        out.split("\n")[-2] for out in programs.run_together(SWAP, [(shared_location, one) for one in "ab"])
    ]
    with Memory(shared_location, user="ada") as memory:
        profile = memory.get("profile")
        assert profile is not None
        assert sorted(said) == [profile.text, "Conflict"]
        check_history(memory, 2)
