"""Times in which nothing is stored or injected."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast import Unavailable
from holdfast_cli.hooks import pause
from soak import cases
from tables import each

T = datetime(2026, 1, 6, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOLDFAST_STATE", str(tmp_path / "state"))
    return tmp_path / "state" / "pauses.jsonl"


def is_paused(project: str, now: datetime | None = None, *, root: str = "") -> bool:
    """Return whether nothing of a project is to be stored or injected."""
    known = pause.read()
    return known.is_damaged or bool(known.now(project, root, now=now))


def test_a_pause_of_a_project_holds_for_it_and_what_is_in_its_folder() -> None:
    pause.pause("shop", "/work/shop", now=T)
    assert is_paused("shop", T)
    assert is_paused("renamed", T, root="/work/shop/cart")
    assert not is_paused("shopping", T, root="/work/shopping")
    assert not pause.resume("", "", now=T)
    assert pause.resume("renamed", "/work/shop", now=T + HOUR)
    assert not is_paused("shop", T)


def test_a_pause_ends_by_itself_or_as_it_is_set_anew() -> None:
    pause.pause("", "", until=T + HOUR, now=T)
    assert is_paused("shop", T + HOUR - timedelta(seconds=1))
    assert not is_paused("shop", T + HOUR)
    # The next one is another one; of one that lasts, the end is changed.
    pause.pause("", "", now=T + 3 * HOUR)
    pause.pause("", "", until=T + 6 * HOUR, now=T + 4 * HOUR)
    known = pause.read()
    hours = [hour for hour in range(8) if known.covers("shop", "", T + HOUR * hour + HOUR / 2)]
    assert hours == [0, 3, 4, 5]


def test_a_clock_that_is_set_back_ends_no_pause() -> None:
    pause.pause("", "", now=T)
    assert is_paused("shop", T - 100 * HOUR)
    assert pause.resume("", "", now=T - HOUR)
    known = pause.read()
    assert known.covers("", "", T - HOUR / 2)
    assert not known.covers("", "", T - 2 * HOUR)
    assert not known.covers("", "", T + HOUR)


GOOD = json.dumps({"do": "resume", "project": "", "root": "", "at": T.isoformat(), "until": None})


@each(
    "content",
    [
        None,
        b"{",
        b"\x00" * 40,
        b"[]\n",
        b"\n",
        GOOD.encode(),
        GOOD[:30].encode() + b"\n" + GOOD.encode() + b"\n",
        GOOD.replace("+00:00", "").encode() + b"\n",
        GOOD.replace("resume", "stop").encode() + b"\n",
        b"[" * 100_000 + b"\n",
        GOOD.encode() + b"\n" + b" " * (5 << 20),
    ],
)
def test_a_damaged_list_pauses_everything(state: Path, content: bytes | None) -> None:
    if content is None:  # it cannot even be read
        state.mkdir(parents=True)
        assert is_paused("shop", T)
        state.rmdir()
        return
    state.write_bytes(content)
    assert is_paused("shop", T)
    for change in (pause.pause, pause.resume):
        with pytest.raises(Unavailable, match="damaged"):
            change("shop", "/shop")
    assert state.read_bytes() == content


@settings(max_examples=cases(12, 150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.sampled_from(["pause", "resume"]), st.sampled_from(["", "a", "b"])), max_size=12)
)
def test_what_is_paused_is_what_was_not_resumed(state: Path, changes: list[tuple[str, str]]) -> None:
    state.unlink(missing_ok=True)
    paused: set[str] = set()
    during: list[tuple[datetime, set[str]]] = []
    for hour, (do, project) in enumerate(changes):
        at = T + hour * HOUR
        if do == "pause":
            pause.pause(project, "", now=at)
            paused.add(project)
        else:
            assert pause.resume(project, "", now=at) == (project in paused)
            paused.discard(project)
        during.append((at + HOUR / 2, set(paused)))
    known = pause.read()
    for project in ("a", "b"):
        assert is_paused(project, T + 99 * HOUR) == bool(paused & {"", project})
        for at, names in during:
            assert known.covers(project, "", at) == bool(names & {"", project})


def test_processes_that_write_at_once_lose_nothing(state: Path) -> None:
    script = "import sys; from holdfast_cli.hooks.pause import pause\n"
    script += "for n in range(25): pause(f'{sys.argv[1]}-{n}', '')"
    running = [subprocess.Popen([sys.executable, "-c", script, name]) for name in "abcd"]
    assert [one.wait() for one in running] == [0] * 4
    known = pause.read()
    assert not known.is_damaged
    assert {one.project for one in known.pauses} == {f"{name}-{n}" for name in "abcd" for n in range(25)}
    assert state.stat().st_mode & 0o777 == 0o600
