"""A database that 0.1 wrote: every later version opens it, proves it, answers the same, and goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from every_space import told
from frozen_database import ANSWERS, answers, empty_tables, opened, thaw
from holdfast import Memory
from holdfast_cli.formats.everything import export_everything
from holdfast_cli.formats.importing import import_paths
from stored_texts import text_of


def test_it_answers_the_same(tmp_path: Path) -> None:
    with opened(thaw(tmp_path)) as app:
        found = answers(app)
    expected = json.loads(ANSWERS.read_text("utf-8"))
    assert {name for name in expected if found[name] != expected[name]} == set()


def test_every_table_of_it_has_rows(tmp_path: Path) -> None:
    # Nobody is on an agenda until the first round, which looks at all; branches came after 0.1.
    assert empty_tables(thaw(tmp_path)) == {"agenda", "heads"}


def test_it_is_proved_and_goes_on(tmp_path: Path) -> None:
    with opened(thaw(tmp_path)) as app:
        for memory in (app.scoped(user="ada"), app.scoped(user="many"), app.scoped(team="core")):
            assert (memory.verify().problems, memory.verify().unproven) == ((), 0)
        ada = app.scoped(user="ada")
        length = ada.chat("monday").stats().messages
        said = ada.chat("monday").append(role="user", content="The zebra is in Bremen by now.")
        assert ada.chat("monday").stats().messages == length + 1
        assert ada.recall("zebra")[0].id == said.id
        ada.replace(ada.records(kind="fact")[0].id, "Lives in Rome")
        assert "Lives in Rome" in ada.chat("new").prompt(2_000).system
        app.learning.work(everyone=True)
        assert app.scoped(user="many").learning.jobs(status="done"), "though nothing touched it"
        ada.chat("monday").compact(budget=200)
        ada.erase(chat="monday", messages=said.seq)
        assert ada.recall("zebra") == []
        assert ada.verify().problems == ()


def test_it_is_moved_to_the_other_database(tmp_path: Path, postgres_url: str) -> None:
    path = tmp_path / "all.jsonl"
    with opened(thaw(tmp_path)) as app, Memory(postgres_url) as copy:
        for name in ("ada", "many"):
            with path.open("w", encoding="ascii") as stream:
                export_everything(app.scoped(user=name), stream)
            assert import_paths(copy.scoped(user=name), path).problems == ()
            one, other = (_told(memory.scoped(user=name)) for memory in (app, copy))
            assert one == other
            assert copy.scoped(user=name).verify().problems == ()


def _told(memory: Memory) -> tuple[dict[str, Any], str]:
    return told(memory), text_of(memory.get("profile"))
