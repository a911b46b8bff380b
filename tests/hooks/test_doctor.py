"""`holdfast doctor`: the transcript is one that Claude Code 2.1.330 wrote, the journal what hooks write."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
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
from holdfast_cli.hooks.clients import client_of
from holdfast_cli.hooks.doctor import Evidences, examine
from holdfast_cli.hooks.install import Setup, hook_command
from holdfast_cli.hooks.journal import HookRun
from holdfast_cli.hooks.transcript_proof import deliveries

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
        for name, value in {
            "HOME": home,
            "HOLDFAST_STATE": home / "state",
            "HOLDFAST_DB": self.db,
            "PATH": home,
        }.items():
            monkeypatch.setenv(name, str(value))
        monkeypatch.setattr("time.time", lambda: NOW)

    def install(
        self, client: str = "claude-code", *, without: str = "", program: str = sys.executable
    ) -> Path:
        known = client_of(client)
        hooks = {
            hook.native: [
                {
                    "hooks": [
                        {
                            "type": "command",
                            "command": f"{shlex.quote(program)} -P -m holdfast hook {hook.event} "
                            f"--client {client}",
                        }
                    ]
                }
            ]
            for hook in known.hooks
            if hook.event != without
        }
        file = self.home / known.folder / known.user_file
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({"hooks": hooks}), "utf-8")
        self.changed(file, NOW - 7_200)
        return file

    def changed(self, file: Path, at: float) -> None:
        os.utime(file, (at, at))

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
        rest = [replace(stop, event=event) for event in ("before-compaction", "session-end")]
        self.ran(*injected(), stop, *rest)
        Memory(self.db).close()

    def ask(self, *words: str) -> Result:
        return CliRunner().invoke(app, ["doctor", *words])

    def found(self, *words: str) -> dict[str, Any]:
        result = self.ask("--json", *words)
        document: dict[str, Any] = json.loads(result.stdout)
        assert result.exit_code == (0 if document["healthy"] else 1)
        return document

    def actions(self) -> list[str]:
        return [check["what"] for check in self.found()["checks"] if check["state"] == "action"]


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
    assert found["deliveries"] == {"sent": 6}
    assert found["tokens"] == {"2026-11-24": sum(run.tokens for run in injected())}
    assert found["projects"] == {"github.com/ada/shop": 6}
    prompts = next(one for one in found["timings"] if one["event"] == "prompt")
    assert (prompts["runs"], prompts["p50"], prompts["p95"], prompts["limit"]) == (2, 81.0, 85.0, 150.0)


def test_no_word_of_a_conversation_is_printed(patient: Patient) -> None:
    patient.whole()
    printed = patient.ask().stdout + patient.ask("--json").stdout
    assert "6 of 6 injected texts reached the model" in printed
    assert "make ship" not in printed
    assert "by hand" not in printed
    assert "rivers" not in printed


def without(unwanted: Callable[[Any], bool]) -> list[Any]:
    return [row for row in ROWS if not unwanted(row)]


def test_without_requests_in_the_transcript_an_answer_after_it_tells(patient: Patient) -> None:
    patient.whole()
    patient.transcript(without(lambda row: row["type"] == "api-request-blob"))
    assert patient.found()["deliveries"] == {"answered": 6}


def test_a_text_that_nothing_follows_waits(patient: Patient) -> None:
    patient.whole()
    patient.transcript(without(lambda row: row["type"] in ("api-request-blob", "assistant")))
    found = patient.found()
    assert found["deliveries"] == {"stored": 6}
    assert found["healthy"]


def test_a_text_that_the_client_dropped_needs_action(patient: Patient) -> None:
    patient.whole()
    patient.transcript(without(lambda row: row.get("attachment", {}).get("hookEvent") == "UserPromptSubmit"))
    assert patient.found()["deliveries"] == {"sent": 4, "missing": 2}
    (action,) = patient.actions()
    assert action.startswith("2 of 6 injected texts are not in the transcript")


def test_what_other_hooks_said_at_the_same_time_proves_nothing(patient: Patient) -> None:
    patient.whole()
    rows = json.loads(json.dumps(ROWS))
    for row in rows:
        if row.get("attachment", {}).get("hookEvent") == "UserPromptSubmit":
            row["attachment"]["content"] = ["A much longer text of another program. " * 9]
    patient.transcript(rows)
    assert patient.found()["deliveries"] == {"sent": 4, "missing": 2}


def test_a_text_that_the_client_shortened_needs_action(patient: Patient) -> None:
    patient.whole()
    rows = json.loads(json.dumps(ROWS))
    row = next(row for row in rows if row.get("attachment", {}).get("type") == "hook_additional_context")
    row["attachment"]["content"] = ["<persisted-output>\nOutput too large (10.2KB)."]
    patient.transcript(rows)
    assert patient.found()["deliveries"] == {"cut": 1, "sent": 5}
    assert "replaced 1 by a shorter text" in patient.actions()[0]


def test_a_session_without_a_transcript_proves_nothing_and_accuses_nobody(patient: Patient) -> None:
    patient.whole()
    patient.transcript().unlink()
    found = patient.found()
    assert found["deliveries"] == {"unknown": 6}
    assert found["healthy"]


def test_of_a_long_transcript_the_end_is_judged(patient: Patient) -> None:
    patient.whole()
    # The last two contexts are at its end, five minutes later; what is before them is too long to be read.
    later = json.loads(json.dumps(ROWS))
    places = [n for n, row in enumerate(later) if row.get("attachment", {}).get("type") == CONTEXT]
    padding = [{"type": "progress", "data": "x" * 1_000_000, "timestamp": "2026-11-24T02:07:00Z"}] * 17
    file = patient.transcript([*later[: places[3]], *padding, *later[places[3] :]])
    assert file.stat().st_size > 17_000_000
    # All of it was said within the minute in which rows may come late: nothing is missing for sure.
    runs = [*injected(), replace(injected()[-1], at=NOW, tokens=99)]
    found = [one.evidence for one in deliveries(runs, patient.home)]
    assert found == ["unknown"] * 6 + ["missing"]


@pytest.mark.parametrize("session", ["../../secret", "*", "", "a" * 5_000, "a\0b", "[!x]*"])
def test_a_session_that_is_no_name_of_a_file_is_looked_for_nowhere(patient: Patient, session: str) -> None:
    patient.transcript()
    runs = [replace(run, session=session) for run in injected()]
    assert {one.evidence for one in deliveries(runs, patient.home)} == {"unknown"}


def test_hooks_that_never_ran_need_action(patient: Patient) -> None:
    patient.install()
    assert any(".claude/settings.json never ran" in action for action in patient.actions())


def test_hooks_that_run_twice_need_action(patient: Patient) -> None:
    patient.whole()
    assert patient.actions() == []
    settings = patient.install()
    local = patient.project / ".claude" / "settings.local.json"
    local.parent.mkdir()
    shutil.copy(settings, local)
    assert (
        "Claude Code has hooks for the user and for this project: each runs twice here." in patient.actions()
    )
    local.unlink()
    assert patient.actions() == []


def test_a_journal_that_cannot_be_written_needs_action(
    patient: Patient, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient.whole()
    (patient.home / "file").write_text("")
    monkeypatch.setenv("HOLDFAST_STATE", str(patient.home / "file" / "state"))
    assert any("file/state cannot be written" in action for action in patient.actions())


def test_codex_hooks_that_never_ran_wait_for_trust(patient: Patient) -> None:
    patient.install("codex")
    assert "Type /hooks in Codex and trust them" in patient.ask().stdout


def test_hooks_that_changed_since_they_ran_are_not_called_well(patient: Patient) -> None:
    """Codex leaves out a command that changed; of other clients, an edit of the file alone is no fault."""
    patient.ran(*(HookRun(NOW - 60, "codex", event, ms=50) for event in ("session-start", "prompt", "stop")))
    file = patient.install("codex")
    assert "Codex calls the hooks in" in patient.ask().stdout
    patient.changed(file, NOW - 30)
    assert patient.actions() == [f"No hook of Codex ran since {file} was changed."]
    assert "Type /hooks in Codex and trust them" in patient.ask().stdout
    patient.ran(HookRun(NOW - 10, "codex", "prompt", ms=50))
    assert patient.actions() == []


def test_a_file_that_changed_since_its_hooks_ran_is_a_note_elsewhere(patient: Patient) -> None:
    patient.whole()
    file = patient.home / ".claude" / "settings.json"
    patient.changed(file, NOW - 30)
    found = patient.found()
    assert found["healthy"]
    hooks = [(one["state"], one["what"]) for one in found["checks"] if one["subject"] == "hooks"]
    assert hooks == [("note", f"No hook of Claude Code ran since {file} was changed.")]


@pytest.mark.parametrize(
    ("files", "named"),
    [
        ({"~": True}, "~"),
        ({"settings.json": True}, "settings.json"),
        ({"settings.local.json": True, "~": False}, "settings.local.json"),
        ({"settings.json": False, "~": True}, ""),
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
        patient.changed(places[name], NOW - 7_200)
    off = [f"Claude Code runs no hooks: {places[named]} has `disableAllHooks`."] if named else []
    assert patient.actions() == off
    text = patient.ask().stdout
    assert ("Claude Code calls the hooks" in text) is not bool(named)


def test_settings_that_switch_off_what_nobody_installed_are_no_matter(patient: Patient) -> None:
    patient.whole()
    settings = patient.home / ".claude" / "settings.json"
    settings.write_text('{"disableAllHooks": true}', "utf-8")
    assert any("runs no hooks" in action for action in patient.actions())
    journal.path().unlink()
    assert patient.actions() == ["No coding agent calls Holdfast."]


def test_a_committed_hook_without_holdfast_on_the_path_names_it(patient: Patient) -> None:
    file = patient.project / ".cursor" / "hooks.json"
    file.parent.mkdir()
    hooks = {
        hook.native: [{"command": hook_command(client_of("cursor"), hook.event, Setup(), shared=True)}]
        for hook in client_of("cursor").hooks
    }
    file.write_text(json.dumps({"version": 1, "hooks": hooks}), "utf-8")
    (todo,) = (one["todo"] for one in patient.found()["checks"] if "never ran" in one["what"])
    assert todo.startswith("`holdfast` is not on the PATH")
    program = patient.home / "holdfast"
    program.write_text("#!/bin/sh\n", "utf-8")
    program.chmod(0o755)
    (todo,) = (one["todo"] for one in patient.found()["checks"] if "never ran" in one["what"])
    assert todo.startswith("Start a session")


def test_comments_in_a_configuration_are_read_as_install_reads_them(patient: Patient) -> None:
    file = patient.install("gemini")
    text = file.read_text("utf-8")
    file.write_text(f"\ufeff// mine\n{text[:-1]},\n}}  // the end\n", "utf-8")
    assert patient.actions() == [f"The hooks in {file} never ran."]


def test_an_event_that_never_ran_is_named(patient: Patient) -> None:
    patient.install()
    patient.transcript()
    patient.ran(*injected())
    assert patient.actions() == ["Claude Code never called stop, though it called other hooks."]
    patient.ran(HookRun(NOW - 60, "claude-code", "stop", ms=50))
    assert patient.actions() == []
    found = patient.found()
    whats = [check["what"] for check in found["checks"]]
    assert "Claude Code did not call before-compaction, session-end yet." in whats


def test_a_client_that_ends_before_its_stop_ran_imports_at_the_end(patient: Patient) -> None:
    patient.install()
    patient.transcript()
    patient.ran(*injected(), HookRun(NOW - 60, "claude-code", "session-end", ms=50))
    assert patient.found()["healthy"]


def test_an_event_that_is_not_installed_is_named(patient: Patient) -> None:
    patient.whole()
    patient.install(without="prompt")
    (action,) = patient.actions()
    assert action.endswith("settings.json lacks prompt.")


def test_a_program_that_is_gone_is_named(patient: Patient) -> None:
    patient.whole()
    patient.install(program="/gone/bin/python")
    (action,) = patient.actions()
    assert action.endswith("calls /gone/bin/python, which is gone.")


def test_a_configuration_that_is_no_json_needs_action(patient: Patient) -> None:
    patient.whole()
    file = patient.install()
    file.write_text(file.read_text("utf-8")[:-5], "utf-8")
    assert any("It is no JSON" in action for action in patient.actions())


def test_an_error_needs_action_until_the_hook_works_again(patient: Patient) -> None:
    patient.whole()
    secret = "postgresql://ada:hunter2secret@db.example/shop"
    patient.ran(HookRun(NOW - 30, "claude-code", "prompt", error=f"Cannot reach {secret}.", ms=20))
    (action,) = patient.actions()
    assert "Claude Code, prompt: Cannot reach" in action
    assert "hunter2secret" not in patient.ask().stdout + patient.ask("--json").stdout
    patient.ran(HookRun(NOW - 20, "claude-code", "prompt", ms=20))
    assert patient.found()["healthy"]


def test_a_hook_that_is_slow_each_time_needs_action(patient: Patient) -> None:
    patient.whole()
    slow = HookRun(NOW - 30, "claude-code", "session-start", ms=700)
    patient.ran(slow, slow)
    # Of the first calls, one makes the database.
    assert patient.actions() == []
    patient.ran(*[slow] * 9)
    (action,) = patient.actions()
    assert action == "Claude Code, session-start: 95 in 100 answers within 700 ms; the limit is 300."


def test_a_lock_is_seen_and_not_waited_for(patient: Patient) -> None:
    patient.whole()
    with closing(sqlite3.connect(patient.db, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert patient.actions() == ["Another program has it locked at this moment."]
    assert patient.found()["healthy"]


def test_the_state_of_a_database_is_told_and_none_is_made(patient: Patient) -> None:
    patient.whole()
    patient.db.write_bytes(b"this is no database at all" * 100)
    assert "It cannot be read: file is not a database." in patient.actions()
    patient.db.unlink()
    assert patient.found()["healthy"]
    assert not patient.db.exists()
    patient.db.mkdir()
    assert patient.actions() == ["It cannot be read: it is no file."]
    patient.db.rmdir()
    Memory(patient.db).close()
    with closing(sqlite3.connect(patient.db)) as other, other:
        other.execute("INSERT INTO schema_version (version) VALUES (9999)")
    assert any("It has schema version 9999" in action for action in patient.actions())


@pytest.mark.skipif(os.name == "nt" or not hasattr(os, "geteuid"), reason="programs of a shell")
def test_the_version_of_a_client_is_asked_of_it(patient: Patient) -> None:
    patient.whole()
    program = patient.home / "claude"
    program.write_text("#!/bin/sh\necho '2.1.330 (Claude Code)'\n", "utf-8")
    program.chmod(0o755)
    assert patient.found()["versions"]["claude-code"] == "2.1.330 (Claude Code)"


def test_lines_that_no_transcript_has_prove_nothing(patient: Patient) -> None:
    patient.whole()
    odd = [b"[" * 100_000, b'"hook_additional_context"', b"\xff api-request-blob", b'{"type": "assistant"}']
    file = patient.transcript()
    file.write_bytes(b"\n".join(odd) + b"\n" + file.read_bytes())
    assert patient.found()["deliveries"] == {"sent": 6}


numbers = st.floats() | st.integers(-(10**40), 10**40).map(float)


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
    assert patient.actions() == ["The list of pauses is damaged, so everything is taken as paused."]


@given(
    st.lists(
        st.builds(
            HookRun,
            at=numbers,
            client=st.sampled_from(("claude-code", "codex", "other\x1b")),
            event=st.sampled_from(("prompt", "stop", "odd")),
            ms=numbers,
            tokens=st.integers(-5, 10**30),
            error=st.text(max_size=20),
        ),
        max_size=20,
    )
)
def test_any_journal_is_judged(runs: list[HookRun]) -> None:
    report = examine(Evidences(runs, [], [], "", {}), NOW)
    assert all(one.p50 <= one.p95 for one in report.timings)
    assert report.checks
