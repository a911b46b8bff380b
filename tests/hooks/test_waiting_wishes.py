"""What a person wants from now on: said in a session, told at the next start, kept by the person's word."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hook_runs import Hooks

from transcripts import claude

pytestmark = pytest.mark.slow

WISH = "Never commit to the main branch directly."
ABOUT = "The checkout of the shop rounds its totals in `shop/cart.py`."


@pytest.fixture
def hooks(tmp_path: Path) -> Hooks:
    made = Hooks(tmp_path)
    made.call("session-start", "s0", source="startup")
    end_session(made, "s0", WISH)
    return made


def end_session(hooks: Hooks, session: str, *wishes: str) -> None:
    """End a session in which a person said some wishes."""
    last = None
    with hooks.transcript(session).open("w") as file:
        for number, text in enumerate((ABOUT, "It does.", *wishes)):
            line = claude("assistant" if number == 1 else "user", f"{session}-{number}", last, text)
            file.write(f"{json.dumps(line | {'sessionId': session})}\n")
            last = f"{session}-{number}"
    hooks.call("session-end", session, reason="exit")


def told(hooks: Hooks, session: str) -> str:
    answer = hooks.call("session-start", session, source="startup")
    return str(json.loads(answer).get("systemMessage", "")) if answer else ""


def cli(hooks: Hooks, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "holdfast", *words]
    return subprocess.run(
        command, check=False, capture_output=True, text=True, env=hooks.environment(), cwd=hooks.shop
    )


@pytest.mark.slow
def test_a_wish_is_told_to_the_person_once(hooks: Hooks) -> None:
    message = told(hooks, "s1")
    assert WISH in message
    assert "holdfast quarantine --project . --release ID" in message
    assert WISH not in told(hooks, "s2")
    end_session(hooks, "s2", "Always name the branches after the ticket.")
    message = told(hooks, "s3")
    assert "after the ticket" in message
    assert WISH not in message


@pytest.mark.slow
@pytest.mark.parametrize("to", [[], ["--to", "user"]])
def test_a_wish_that_the_person_keeps_holds_in_this_project_or_in_all(hooks: Hooks, to: list[str]) -> None:
    (identity,) = re.findall(r"rec_\w+", told(hooks, "s1"))
    done = cli(hooks, "quarantine", "--project", ".", "--release", identity, *to)
    assert done.returncode == 0, done.stderr
    assert WISH in hooks.context("session-start", "s2", source="startup")
    elsewhere = hooks.call("session-start", "s3", source="startup", cwd=str(hooks.folder))
    assert (WISH in elsewhere) == bool(to)


@pytest.mark.slow
def test_many_wishes_are_counted_and_none_is_obeyed_by_a_terminal(hooks: Hooks) -> None:
    told(hooks, "s1")
    colors = ("red", "blue", "tan", "sky")
    wishes = [f"Never use the \x1b[31mcolor\x1b[0m {name} in a page." for name in colors]
    end_session(hooks, "s1", *wishes)
    message = told(hooks, "s2")
    assert len(re.findall(r"rec_\w+", message)) == 3
    assert "and 1 more" in message
    assert "\x1b" not in message
