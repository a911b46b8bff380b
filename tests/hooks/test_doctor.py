"""`holdfast doctor`: the transcript is one that Claude Code 2.1.330 wrote, the journal what hooks write."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from holdfast import Memory
from holdfast.text.tokens import estimate_tokens
from holdfast_cli.commands import app
from holdfast_cli.hooks import journal, pause
from holdfast_cli.hooks.doctor import Evidences, examine
from holdfast_cli.hooks.journal import HookRun
from install_home import FILES
from tables import each

RECORDED = Path(__file__).parent / "fixtures" / "claude-code-2.1.330.jsonl"
ROWS = [json.loads(line) for line in RECORDED.read_text("utf-8").splitlines()]
SESSION = ROWS[0]["sessionId"]
CONTEXT = "hook_additional_context"
EVENTS = {"SessionStart": "session-start", "UserPromptSubmit": "prompt"}
NOW = datetime.fromisoformat("2026-11-24T02:30:00Z").timestamp()


def injected() -> list[HookRun]:
    """Make the lines of the journal of what the recorded session shows."""
    contexts = [row for row in ROWS if row.get("attachment", {}).get("type") == CONTEXT]
    return [
        HookRun(
            at=datetime.fromisoformat(row["timestamp"]).timestamp() - 0.1,
            client="claude-code",
            event=EVENTS[row["attachment"]["hookEvent"]],
            session=SESSION,
            project="github.com/ada/shop",
            ms=80.0 + number,
            tokens=estimate_tokens(row["attachment"]["content"][0]),
            shown=(f"r{number}",),
        )
        for number, row in enumerate(contexts)
    ]


class Patient:
    """A home with a client, its transcripts, and the journal of its hooks."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home, self.db = home, home / "memory.db"
        self.project = home / "shop"
        self.project.mkdir(parents=True)
        monkeypatch.chdir(self.project)
        for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "HOLDFAST_USER", "HOLDFAST_PROJECT", "COLUMNS"):
            monkeypatch.delenv(name, raising=False)
        own = {"HOME": home, "HOLDFAST_STATE": home / "state", "HOLDFAST_DB": self.db, "PATH": home}
        for name, value in own.items():
            monkeypatch.setenv(name, str(value))
        monkeypatch.setattr("time.time", lambda: NOW)

    def install(self, client: str = "claude-code") -> Path:
        """Install a client as a person does, two hours ago."""
        assert CliRunner().invoke(app, ["install", client, "--yes"]).exit_code == 0
        return self.changed(self.home / FILES[client][0])

    def changed(self, file: Path, at: float = NOW - 7_200, old: str = "", new: str = "") -> Path:
        """Change a text in a file at a time."""
        file.write_text(file.read_text("utf-8").replace(old, new), "utf-8")
        os.utime(file, (at, at))
        return file

    def transcript(self, rows: list[Any] | None = None) -> Path:
        file = self.home / ".claude" / "projects" / "-home-ada-shop" / f"{SESSION}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows or ROWS), "utf-8")
        return file

    def ran(self, *runs: HookRun) -> None:
        for run in runs:
            assert journal.write(run)

    def whole(self) -> None:
        """Make everything well: installed, called at each event, and with a database."""
        self.install()
        self.transcript()
        stop = HookRun(NOW - 60, "claude-code", "stop", session=SESSION, ms=50)
        rest = [stop._replace(event=event) for event in ("before-compaction", "session-end")]
        self.ran(*injected(), stop, *rest)
        Memory(self.db).close()

    def ask(self, *words: str) -> Result:
        return CliRunner().invoke(app, ["doctor", *words])

    def found(self, *words: str) -> dict[str, Any]:
        result = self.ask("--json", *words)
        document: dict[str, Any] = json.loads(result.stdout)
        assert result.exit_code == (0 if document["healthy"] else 1)
        return document

    def told(self, state: str = "action") -> list[str]:
        return [check["what"] for check in self.found()["checks"] if check["state"] == state]


@pytest.fixture
def patient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Patient:
    return Patient(tmp_path / "ada", monkeypatch)


def test_where_nothing_is_installed_it_says_what_to_do(patient: Patient) -> None:
    result = patient.ask()
    assert result.exit_code == 1
    assert "No coding agent calls Holdfast." in result.stdout
    assert "holdfast install claude-code" in result.stdout


def test_a_session_whose_texts_stand_in_requests_is_healthy(patient: Patient) -> None:
    patient.whole()
    found = patient.found()
    assert found["healthy"]
    assert found["tokens"] == {"2026-11-24": sum(run.tokens for run in injected())}
    assert found["projects"] == {"github.com/ada/shop": 6}
    prompts = next(one for one in found["timings"] if one["event"] == "prompt")
    assert (prompts["runs"], prompts["p50"], prompts["p95"], prompts["limit"]) == (2, 81.0, 85.0, 8000.0)
    # No word of a conversation is printed.
    printed = patient.ask().stdout + patient.ask("--json").stdout
    assert "6 of 6 injected texts reached the model" in printed
    assert not any(words in printed for words in ("make ship", "by hand", "rivers"))


def is_prompt(row: Any) -> bool:
    return bool(row.get("attachment", {}).get("hookEvent") == "UserPromptSubmit")


def rewritten(text: str, *, every: bool) -> list[Any]:
    """Return the rows with another text in place of what was injected at prompts, or at first."""
    rows = json.loads(json.dumps(ROWS))
    shown = [row for row in rows if row.get("attachment", {}).get("type") == CONTEXT]
    for row in filter(is_prompt, shown) if every else shown[:1]:
        row["attachment"]["content"] = [text]
    return list(rows)


@each(
    ("rows", "deliveries", "action"),
    [
        (ROWS, {"sent": 6}, ""),
        # Without requests in the transcript an answer after it tells, and what nothing follows waits.
        ([row for row in ROWS if row["type"] != "api-request-blob"], {"answered": 6}, ""),
        ([row for row in ROWS if row["type"] not in ("api-request-blob", "assistant")], {"stored": 6}, ""),
        # The client dropped texts, other hooks spoke at the same time, or the client shortened them.
        (
            [row for row in ROWS if not is_prompt(row)],
            {"sent": 4, "missing": 2},
            "2 of 6 injected texts are not in the transcript",
        ),
        (
            rewritten("A much longer text of another program. " * 9, every=True),
            {"sent": 4, "missing": 2},
            "2 of 6 injected texts are not in the transcript",
        ),
        (
            rewritten("<persisted-output>\nOutput too large (10.2KB).", every=False),
            {"cut": 1, "sent": 5},
            "replaced 1 by a shorter text",
        ),
        # Lines that no transcript has prove nothing, and nor does no transcript.
        ([[[[]]], CONTEXT, {"type": "assistant"}, *ROWS], {"sent": 6}, ""),
        ([], {"unknown": 6}, ""),
    ],
)
def test_what_became_of_injected_texts_is_told_by_the_transcript(
    patient: Patient, rows: list[Any], deliveries: dict[str, int], action: str
) -> None:
    if not journal.path().exists():
        patient.whole()
    file = patient.transcript(rows)
    if not rows:
        file.unlink()
    found = patient.found()
    assert (found["deliveries"], found["healthy"]) == (deliveries, not action)
    assert action in " ".join(patient.told())
    file.unlink(missing_ok=True)


def test_hooks_that_run_twice_need_action(patient: Patient) -> None:
    patient.whole()
    settings = patient.home / FILES["claude-code"][0]
    local = patient.project / ".claude" / "settings.local.json"
    local.parent.mkdir()
    shutil.copy(settings, local)
    twice = "Claude Code has hooks for the user and for this project: each runs twice here."
    assert twice in patient.told()
    local.unlink()
    assert patient.told() == []


def test_hooks_that_changed_since_they_ran_are_not_called_well(patient: Patient) -> None:
    """Codex leaves out a command that changed; of other clients, an edit of the file alone is no fault."""
    codex, claude = patient.install("codex"), patient.install("claude-code")
    trust = "Type /hooks in Codex and trust them"
    assert patient.told() == [f"The hooks in {file} never ran." for file in (claude, codex)]
    assert trust in patient.ask().stdout
    for client in ("codex", "claude-code"):
        events = ("session-start", "prompt", "stop")
        patient.ran(*(HookRun(NOW - 60, client, event, ms=50) for event in events))
    assert patient.told() == []
    for file in (codex, claude):
        patient.changed(file, NOW - 30)
    assert patient.told() == [f"No hook of Codex ran since {codex} was changed."]
    assert f"No hook of Claude Code ran since {claude} was changed." in patient.told("note")
    assert trust in patient.ask().stdout
    patient.ran(HookRun(NOW - 10, "codex", "prompt", ms=50))
    assert patient.told() == []


@pytest.mark.parametrize(
    ("files", "named"),
    [
        ({"~": True}, "~"),
        ({"settings.json": True}, "settings.json"),
        ({"settings.local.json": True, "~": False}, "settings.local.json"),
        ({"settings.local.json": False, "settings.json": True}, ""),
        ({"settings.local.json": "yes", "~": True}, "~"),
    ],
)
def test_hooks_that_the_settings_switch_off_need_action(
    patient: Patient, files: dict[str, object], named: str
) -> None:
    """The file that is nearest to the session counts: local, then of the project, then of the user."""
    patient.whole()
    settings = patient.home / ".claude" / "settings.json"
    places = {name: settings if name == "~" else patient.project / ".claude" / name for name in files}
    for name, value in files.items():
        places[name].parent.mkdir(exist_ok=True)
        before = json.loads(places[name].read_text("utf-8")) if name == "~" else {}
        places[name].write_text(json.dumps({**before, "disableAllHooks": value}), "utf-8")
        patient.changed(places[name])
    off = [f"Claude Code runs no hooks: {places[named]} has `disableAllHooks`."] if named else []
    assert patient.told() == off
    assert ("Claude Code calls the hooks" in patient.ask().stdout) is not bool(named)
    if named == "~":
        # Of hooks that nobody installed it is no matter.
        settings.write_text('{"disableAllHooks": true}', "utf-8")
        journal.path().unlink()
        assert patient.told() == ["No coding agent calls Holdfast."]


def test_an_event_that_never_ran_is_named(patient: Patient) -> None:
    patient.install()
    patient.transcript()
    patient.ran(*injected())
    assert patient.told() == ["Claude Code never called stop, though it called other hooks."]
    # A client that ends before its stop ran imports at the end.
    patient.ran(HookRun(NOW - 60, "claude-code", "session-end", ms=50))
    assert patient.told() == []
    whats = patient.told("note")
    assert "Claude Code did not call stop, before-compaction yet." in whats


@each(
    ("old", "new", "action"),
    [
        ("hook prompt", "hook odd", "settings.json lacks prompt."),
        (sys.executable, "/gone/bin/python", "calls /gone/bin/python, which is gone."),
        ('"hooks"', "hooks", "It is no JSON"),
        # Comments are read as an installation reads them.
        ('{\n  "hooks"', '\ufeff// mine\n{\n "hooks"', ""),
    ],
)
def test_what_is_wrong_in_a_configuration_is_named(patient: Patient, old: str, new: str, action: str) -> None:
    if not journal.path().exists():
        patient.whole()
    file = patient.home / FILES["claude-code"][0]
    text = file.read_text("utf-8")
    assert old in text
    patient.changed(file, old=old, new=new)
    actions = patient.told()
    assert (action in actions[0]) if action else actions == []
    file.write_text(text, "utf-8")


def test_an_error_needs_action_until_the_hook_works_again(patient: Patient) -> None:
    patient.whole()
    secret = "postgresql://ada:hunter2secret@db.example/shop"
    patient.ran(HookRun(NOW - 30, "claude-code", "prompt", error=f"Cannot reach {secret}.", ms=20))
    (action,) = patient.told()
    assert "Claude Code, prompt: Cannot reach" in action
    assert "hunter2secret" not in patient.ask().stdout + patient.ask("--json").stdout
    patient.ran(HookRun(NOW - 20, "claude-code", "prompt", ms=20))
    assert patient.found()["healthy"]


def test_a_lock_is_seen_and_not_waited_for(patient: Patient) -> None:
    patient.whole()
    with closing(sqlite3.connect(patient.db, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert patient.told() == ["Another program has it locked at this moment."]
    assert patient.found()["healthy"]


def test_the_state_of_a_database_is_told_and_none_is_made(patient: Patient) -> None:
    patient.whole()
    patient.db.write_bytes(b"this is no database at all" * 100)
    assert "It cannot be read: file is not a database." in patient.told()
    patient.db.unlink()
    assert patient.found()["healthy"]
    assert not patient.db.exists()
    patient.db.mkdir()
    assert patient.told() == ["It cannot be read: it is no file."]
    patient.db.rmdir()
    Memory(patient.db).close()
    with closing(sqlite3.connect(patient.db)) as other, other:
        other.execute("INSERT INTO schema_version (version) VALUES (9999)")
    assert any("It has schema version 9999" in action for action in patient.told())


def test_pauses_in_force_are_listed(patient: Patient) -> None:
    patient.whole()
    at = datetime.fromtimestamp(NOW - 60, UTC)
    pause.pause("github.com/ada/shop", "", now=at)
    pause.pause("github.com/ada/blog", "", now=at - timedelta(days=2), until=at - timedelta(days=1))
    found = patient.found()
    assert found["healthy"]
    paused = [check["what"] for check in found["checks"] if check["subject"] == "pauses"]
    assert paused == ["github.com/ada/shop is paused: nothing is stored or injected."]
    pause.path().write_text("damaged", "utf-8")
    assert patient.told() == ["The list of pauses is damaged, so everything is taken as paused."]


NUMBERS = st.floats() | st.integers(-(10**40), 10**40).map(float)
RUNS = st.builds(
    HookRun,
    at=NUMBERS,
    client=st.sampled_from(("claude-code", "codex", "other\x1b")),
    event=st.sampled_from(("prompt", "stop", "odd")),
    ms=NUMBERS,
    tokens=st.integers(-5, 10**30),
    error=st.text(max_size=20),
)


@given(st.lists(RUNS, max_size=20))
def test_any_journal_is_judged(runs: list[HookRun]) -> None:
    report = examine(Evidences(runs, [], [], "", {}), NOW)
    assert all(one.p50 <= one.p95 for one in report.timings)
    assert report.checks
