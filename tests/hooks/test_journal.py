"""The journal of hook calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast_cli.hooks import journal
from holdfast_cli.hooks.journal import HookRun


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(journal.STATE, str(tmp_path / "state"))
    return tmp_path / "state"


def test_a_call_is_read_as_it_was_written() -> None:
    run = HookRun(5.5, "codex", "prompt", "s", "p", 1.5, 7, ("a#1", "rec"), "It broke.", "why", "before")
    assert journal.write(run)
    assert journal.write(HookRun(6.0, "", ""))
    assert journal.read() == journal.tail() == [run, HookRun(6.0, "", "")]


def test_what_is_no_call_is_left_out(state: Path) -> None:
    journal.write(HookRun(1.0, "codex", "stop"))
    with journal.path().open("ab") as file:
        file.write(
            b'\n{"at": 1}\n[]\n{\n\xff\n' + b"[" * 5_000 + b'\n{"at": "x", "client": 5, "event": ""}\n'
        )
        file.write(
            b'{"at": 2.0, "client": "codex", "event": "stop", "later": 1, "shown": [1, "a"], "ms": "x"}'
        )
    assert journal.read() == [HookRun(1.0, "codex", "stop"), HookRun(2.0, "codex", "stop", shown=("a",))]


@pytest.mark.slow
def test_it_is_of_bounded_size(state: Path) -> None:
    line = HookRun(1.0, "codex", "stop", shown=tuple(f"chat#{n}" for n in range(5_000)))
    for _ in range(200):
        journal.write(line)
    sizes = [file.stat().st_size for file in state.iterdir()]
    assert len(sizes) == 2
    assert max(sizes) < 5 << 20
    assert journal.read()[-1] == line


def test_where_it_cannot_be_written_nothing_is_raised(state: Path) -> None:
    state.write_text("a file")
    assert not journal.write(HookRun(1.0, "codex", "stop"))
    assert journal.read() == []


def test_an_error_is_told_once_a_session_and_again_only_if_it_goes_on() -> None:
    failed = HookRun(1.0, "codex", "stop", "s1", error="Locked.")
    assert journal.untold_error([failed], "codex", "s1") == "Locked."
    assert journal.untold_error([failed], "gemini", "s1") == ""
    told = HookRun(2.0, "codex", "prompt", "s1", told="Locked.")
    assert journal.untold_error([failed, told], "codex", "s1") == ""
    assert journal.untold_error([failed, told], "codex", "s2") == ""
    still = HookRun(2.0, "codex", "prompt", "s1", told="Locked.", error="Locked.")
    assert journal.untold_error([failed, still], "codex", "s1") == ""
    assert journal.untold_error([failed, still], "codex", "s2") == "Locked."
    assert (
        journal.untold_error([failed, still, HookRun(3.0, "codex", "stop", error="Gone.")], "codex", "s1")
        == "Gone."
    )
