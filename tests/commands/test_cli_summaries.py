"""`tree`, `expand`, and what other commands show of summaries."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
from cli_runs import Cli
from cli_voyage import compacted, one_of, with_voyage

cli, done = pytest.fixture(with_voyage), pytest.fixture(compacted)


def test_expand_shows_the_messages_as_show_does(cli: Cli, done: dict[str, Any]) -> None:
    leaf = one_of(cli, "leaf")
    text = cli.text("expand", leaf["id"])
    head, shown = text.split("\n\n", 1)
    assert head.splitlines()[0].endswith("(voyage)")
    period = f"2026-05-01 08:00 to 08:{leaf['last'] - 1:02}"
    how = f"(leaf, {leaf['tokens']} tokens, deterministic)"
    assert head.splitlines()[1] == f"{leaf['ref']}  {period}  summary  {leaf['id']}  {how}"
    assert shown in cli.text("show", "voyage", "--after", "0", "--limit", str(leaf["last"]))
    assert "Entry 0: " in shown


def test_an_expansion_goes_on_by_the_command_that_it_gives(cli: Cli, done: dict[str, Any]) -> None:
    one = one_of(cli, "condensed")
    text = cli.text("expand", one["id"], "--max-tokens", "50", "--full")
    seen = [text]
    while "Go on: " in text:
        line = text.splitlines()[-1]
        assert re.match(rf"Truncated at {one['chat']}#\d+ of {one['ref']}\. Go on: ", line)
        text = cli.text(*shlex.split(line.partition("Go on: holdfast ")[2]))
        seen.append(text)
    assert len(seen) > 1
    assert all(child in "".join(seen) for child in cli.json("tree", one["id"])["children"])
    assert "What is behind one: holdfast expand ID" in seen[-1]


def test_recall_finds_summaries(cli: Cli, done: dict[str, Any]) -> None:
    words = ("recall", "buoy", "Bergen", "--source", "summary", "--limit", "1")
    (hit,) = cli.json(*words)["hits"]
    first, *_, last = cli.text(*words).splitlines()
    assert (hit["source"], hit["kind"] in ("leaf", "condensed")) == ("summary", True)
    assert re.match(r"1\. 0\.\d\d  2026-05-01 08:\d\d  summary  of Entry 0: .*", first)
    assert first.endswith(f"({hit['ref']}, {hit['id']})")
    assert last == f"What is behind the first: holdfast expand {hit['id']}"
    assert "Entry" in cli.text(*last.partition("holdfast ")[2].split())
