"""`tree`, `expand`, and what other commands show of summaries."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
from cli_runs import Cli
from cli_voyage import compacted, one_of, tree_of, with_voyage

from holdfast import Memory

cli, done = pytest.fixture(with_voyage), pytest.fixture(compacted)


def test_the_tree_of_a_chat(cli: Cli, done: dict[str, Any]) -> None:
    text = cli.text("tree", "voyage")
    lines = text.splitlines()
    assert lines[0].endswith("(voyage)")
    assert lines[3].split() == ["summary", "messages", "times", "tokens", "level", "text"]
    tree = {one["id"]: one for one in tree_of(cli)}
    assert tree.keys() == {one["id"] for one in done["summaries"]}
    branches = [line[:3] for line in lines if line[0:1] in ("├", "└")]
    assert branches == ["├─ "] * (len(branches) - 1) + ["└─ "]
    shown = [re.sub("^[├└]─ ", "  ", line).rstrip() for line in lines[4 : 4 + len(tree)]]
    for line in shown:
        one = tree[line.split()[0]]
        span = f"#{one['first']}-{one['last']}"
        times = f"{one['since'][11:16]}–{one['until'][11:16]}"
        assert line.startswith(f"  {one['id']}" if one["parent"] else one["id"])
        assert line.split()[1:5] == [span, times, str(one["tokens"]), "deterministic"]
        assert re.search(r"  user: Entry \d+: .{50,110}…$", line)
    with Memory(cli.db) as memory:
        stats = memory.chat("voyage").stats()
    left = stats.messages - stats.summarised
    assert re.search(rf"\nnot summarised +#{stats.summarised + 1}-60 .*  {left} messages, as written\n", text)
    assert f"summaries for {stats.summarised} of 60 messages; {stats.context_tokens:,} instead of" in text
    assert text.endswith("holdfast expand ID\n")


def test_a_chat_without_summaries_says_how_to_make_them(cli: Cli) -> None:
    text = cli.text("tree", "voyage", "--db", cli.db)
    assert "\nNo summaries: this chat is not compacted.\n" in text
    assert text.endswith(f"→ Compact it, once it is long enough: holdfast compact voyage --db {cli.db}\n")
    assert cli.json("tree", "voyage")["unsummarised"]["messages"] == 60


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


def test_unknown_ids(cli: Cli, done: dict[str, Any]) -> None:
    leaf = one_of(cli, "leaf")["id"]
    for command in ("expand", "tree"):
        assert cli.complaint(command, "sum_x").startswith("Error: There is no summary 'sum_x' here.\n→ ")
        assert "There is no summary" in cli.complaint(command, leaf, "--tenant", "other")
    assert f"'x' is no cursor of summary {leaf}." in cli.complaint("expand", leaf, "--cursor", "x")
    assert "is no cursor" in cli.complaint("expand", leaf, "--cursor", "999")
    assert "(voyage)" in cli.text("tree", leaf, "--user", "bob")  # what all users share, with its title
    last = str(one_of(cli, "leaf")["last"])
    assert cli.text("expand", leaf, "--cursor", last).endswith("There is no more.\n")


def test_recall_finds_summaries(cli: Cli, done: dict[str, Any]) -> None:
    words = ("recall", "buoy", "Bergen", "--source", "summary", "--limit", "1")
    (hit,) = cli.json(*words)["hits"]
    first, *_, last = cli.text(*words).splitlines()
    assert (hit["source"], hit["kind"] in ("leaf", "condensed")) == ("summary", True)
    assert re.match(r"1\. 0\.\d\d  2026-05-01 08:\d\d  summary  of Entry 0: .*", first)
    assert first.endswith(f"({hit['ref']}, {hit['id']})")
    assert last == f"What is behind the first: holdfast expand {hit['id']}"
    assert "Entry" in cli.text(*last.partition("holdfast ")[2].split())
