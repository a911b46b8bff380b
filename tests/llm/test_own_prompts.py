"""Prompts of one's own, and what learning with another prompt changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Memory
from learning_scripts import BACKUP, SESSION, finding, hold, known, learned, own_prompt, texts

pytestmark = pytest.mark.usefixtures("clock")


@pytest.fixture
def prompt(tmp_path: Path) -> str:
    return own_prompt(tmp_path)


def test_a_prompt_of_the_user_s_own_is_asked_and_noted(quick: Memory, prompt: str) -> None:
    hold(quick).end()
    model = finding(BACKUP)
    quick.learning.work(llm=model, prompts={"session": prompt})
    assert model.asked("observe")[0].startswith('Say what you learn of the session "')
    assert [record.meta["learned"] for record in learned(quick)] == ["session short"]


def test_relearning_shows_and_makes_a_difference_and_can_be_undone(memory: Memory, prompt: str) -> None:
    chat = hold(memory)
    old = [("All 42 tests of the shop pass.", (4, 4), SESSION[3]), ("Redis is fast.", (2, 2), "Redis runs")]
    chat.extract(llm=finding(*old))
    memory.remember("The till is made of oak.", kind="finding", by="user", chat="shop")
    before, version = known(memory), memory.version()
    model = finding(old[0], ("The sessions of the shop are in PostgreSQL.", (3, 3), SESSION[2]))

    shown = memory.learning.relearn(llm=model, prompt=prompt, dry_run=True)
    assert (shown.prompt, shown.chats, shown.kept, shown.applied) == ("session short", ("shop",), 1, False)
    assert [record.text for record in shown.added] == ["The sessions of the shop are in PostgreSQL."]
    assert [record.text for record in shown.removed] == ["Redis is fast."]
    assert (known(memory), memory.version()) == (before, version)
    assert model.asked("observe")[0].startswith("Say what you learn")
    assert {line.purpose for line in memory.learning.usage().lines} == {"observe", "relearn"}

    made = memory.learning.relearn(llm=model, prompt=prompt)
    assert (made.applied, made.failed) == (True, {})
    assert texts(memory, "finding") == [
        "All 42 tests of the shop pass.",
        "The till is made of oak.",
        "The sessions of the shop are in PostgreSQL.",
    ]
    new = memory.records(kind="finding")[-1]
    assert (new.meta["learned"], new.messages, new.chat) == ("session short", (3, 3), "shop")
    assert memory.learning.relearn(llm=model, prompt=prompt).added == ()

    memory.undo()
    assert known(memory) == before
