"""Prompts of one's own, and what learning with another prompt changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Memory
from learning_scripts import BACKUP, finding, hold, learned, own_prompt

pytestmark = pytest.mark.usefixtures("clock")


def test_a_prompt_of_the_user_s_own_is_asked_and_noted(quick: Memory, tmp_path: Path) -> None:
    hold(quick).end()
    model = finding(BACKUP)
    quick.learning.work(llm=model, prompts={"session": own_prompt(tmp_path)})
    assert model.asked("observe")[0].startswith('Say what you learn of the session "')
    assert [record.meta["learned"] for record in learned(quick)] == ["session short"]
