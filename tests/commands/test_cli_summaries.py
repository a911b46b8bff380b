"""`tree`, `expand`, and what other commands show of summaries."""

from __future__ import annotations

import io
import json
import re
import shlex
import sqlite3
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cli_runs import FORBIDDEN, Cli, Terminal
from cli_voyage import BEGIN, compacted, fill, one_of, tree_of, with_voyage

from holdfast import Memory, Summary
from holdfast_cli.commands.render.screen import Screen, fit
from holdfast_cli.commands.render.summaries import Rest, show_tree
from holdfast_cli.formats.importing import import_paths

cli, done = pytest.fixture(with_voyage), pytest.fixture(compacted)


HOSTILE = (
    "\x1b]0;owned\x07\x1b[31mred\x1b[0m \u202egnp.exe [bold]x[/]\r\n"
    "#9  2026-01-01 00:00  user\nkind      none\n"
)


def summary(identity: str, first: int, last: int, text: str, **more: Any) -> Summary:
    since, until = BEGIN + timedelta(hours=first), BEGIN + timedelta(hours=last)
    rest: dict[str, Any] = {"depth": 0, "tokens": 100 * last, "level": "normal", **more}
    return Summary(
        identity, "c", rest.pop("depth"), first, last, text,
        since=since, until=until, messages=last - first + 1, source_tokens=5000, at=until, **rest,
    )  # fmt: skip


TREE = [
    summary("sum_1", 1, 2, "1 May 2026\nuser: the harbour\nassistant: noted", parent="sum_9"),
    summary("sum_2", 3, 3, "A ferry came. " * 20, parent="sum_9", level="capped"),
    summary("sum_3", 21, 30, "港に船が着いた。" * 30),
    summary("sum_9", 1, 3, "1 May 2026", depth=1),
]


REST = Rest(3, 31, 34, 1250, BEGIN + timedelta(hours=31), BEGIN + timedelta(days=300))


def drawn(cli: Cli, width: int, rest: Rest | None = REST) -> list[str]:
    cli.monkeypatch.setenv("COLUMNS", str(width or 80))
    cli.monkeypatch.setenv("LINES", "25")  # without it Rich takes a dumb terminal for one of 80 columns
    cli.monkeypatch.setenv("TERM", "dumb")
    stream = Terminal() if width else io.StringIO()
    show_tree(Screen(stream), TREE, rest)
    return stream.getvalue().splitlines()


def test_a_tree_is_drawn(cli: Cli) -> None:
    lines = drawn(cli, 0)
    harbour = "user: the harbour assistant: noted"
    ferry = ("A ferry came. " * 8) + "A"
    ship = ("港に船が着いた。" * 8)[:59]
    assert lines == [
        "summary         messages  dates                    tokens  level   text",
        "sum_9           #1-3      2026-05-01                  300  normal  1 May 2026",
        f"├─ sum_1        #1-2      2026-05-01                  200  normal  {harbour}",
        f"└─ sum_2        #3        2026-05-01                  300  capped  {ferry}…",
        f"sum_3           #21-30    2026-05-02                3,000  normal  {ship}…",
        "not summarised  #31-34    2026-05-02 – 2027-02-25   1,250          3 messages, as written",
    ]


def test_a_tree_fits_the_terminal(cli: Cli) -> None:
    lines = drawn(cli, 100)
    assert lines[3].endswith("capped  A ferry came. A ferry came. A…")
    assert lines[4].endswith("normal  港に船が着いた。港に船が着いた。…")
    narrow = drawn(cli, 72)
    assert narrow[:6] == [
        "summary         messages  dates                    tokens  level",
        "sum_9           #1-3      2026-05-01                  300  normal",
        "│  1 May 2026",
        "├─ sum_1        #1-2      2026-05-01                  200  normal",
        "│     user: the harbour assistant: noted",
        "└─ sum_2        #3        2026-05-01                  300  capped",
    ]
    assert narrow[-1] == "   3 messages, as written"


def test_the_tree_of_one_day_has_its_times(cli: Cli) -> None:
    short = [one for one in TREE if one.last <= 3]
    stream = io.StringIO()
    show_tree(Screen(stream), short, None)
    assert stream.getvalue().splitlines()[:3] == [
        "summary   messages  times        tokens  level   text",
        "sum_9     #1-3      09:00–11:00     300  normal  1 May 2026",
        "├─ sum_1  #1-2      09:00–10:00     200  normal  user: the harbour assistant: noted",
    ]


def test_a_text_is_cut_at_a_word() -> None:
    assert fit("one two three", 13) == "one two three"
    assert fit("one two three", 12) == "one two…"
    assert fit("x" * 20, 5) == "xxxx…"
    assert fit("漢字漢字", 5) == "漢字…"
    assert fit("", 5) == ""


def test_the_tree_of_a_chat(cli: Cli, done: dict[str, Any]) -> None:
    text = cli.text("tree", "voyage")
    lines = text.splitlines()
    assert lines[0].endswith("(voyage)")
    assert lines[3].startswith("summary  ")
    roots = [one for one in done["summaries"] if one["depth"]]
    assert any(line.startswith(f"{one['id']}    ") for one in roots for line in lines)
    assert all(one["id"] in text for one in done["summaries"])
    assert sum("├─ " in line or "└─ " in line for line in lines) == len(
        [one for one in tree_of(cli) if one["parent"]]
    )
    with Memory(cli.db) as memory:
        stats = memory.chat("voyage").stats()
    left = stats.messages - stats.summarised
    assert re.search(rf"\nnot summarised +#{stats.summarised + 1}-60 .*  {left} messages, as written\n", text)
    assert f"summaries for {stats.summarised} of 60 messages; {stats.context_tokens:,} instead of" in text
    assert text.endswith("holdfast expand ID\n")


def test_a_tree_as_json(cli: Cli, done: dict[str, Any]) -> None:
    answer = cli.json("tree", "voyage")
    assert set(answer) == {"chat", "title", "summaries", "unsummarised", "more"}
    one = answer["summaries"][0]
    assert set(one) == {
        "kind", "id", "chat", "depth", "first", "last", "text", "tokens", "parent", "since", "until", "level",
        "messages", "source_tokens", "model", "prompt", "at", "ref",
    }  # fmt: skip
    assert (one["kind"], one["first"], one["since"]) == ("leaf", 1, "2026-05-01T08:00:00+00:00")
    rest = answer["unsummarised"]
    assert rest["last"] == 60
    assert rest["messages"] == 60 - rest["first"] + 1
    assert rest["until"] == "2026-05-01T08:59:00+00:00"
    frontier = sum(one["tokens"] for one in answer["summaries"] if not one["parent"])
    assert frontier + rest["tokens"] == done["tokens_after"]


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


@pytest.mark.slow
def test_an_expansion_goes_on_by_the_command_that_it_gives(cli: Cli, done: dict[str, Any]) -> None:
    for kind in ("leaf", "condensed"):
        one = one_of(cli, kind)
        text = cli.text("expand", one["id"], "--max-tokens", "50", "--full")
        seen = [text]
        while "Go on: " in text:
            line = text.splitlines()[-1]
            assert re.match(rf"Truncated at {one['chat']}#\d+ of {one['ref']}\. Go on: ", line)
            text = cli.text(*shlex.split(line.partition("Go on: holdfast ")[2]))
            seen.append(text)
        assert len(seen) > 1
        if kind == "leaf":
            assert all(f"Entry {number - 1}: " in "".join(seen) for number in range(1, one["last"] + 1))
        else:
            children = cli.json("tree", one["id"])["children"]
            assert all(child in "".join(seen) for child in children)
            assert "What is behind one: holdfast expand ID" in seen[-1]


def walk(cli: Cli, identity: str, tokens: int) -> Iterator[dict[str, Any]]:
    cursor: tuple[str, ...] = ()
    while True:
        part = cli.json("expand", identity, "--max-tokens", str(tokens), *cursor)
        yield part
        if not part["truncated"]:
            break
        cursor = ("--cursor", part["cursor"])


def reached(cli: Cli, identity: str, tokens: int) -> Iterator[int]:
    """Walk down from a summary to the messages."""
    for part in walk(cli, identity, tokens):
        for child in part["children"]:
            yield from reached(cli, child["id"], tokens)
        yield from (message["seq"] for message in part["messages"])


def assert_all_is_reached(cli: Cli, chat: str, tokens: int) -> None:
    answer = cli.json("tree", chat)
    frontier = sorted(
        (one for one in answer["summaries"] if not one["parent"]), key=lambda one: int(one["first"])
    )
    seen = [seq for one in frontier for seq in reached(cli, one["id"], tokens)]
    assert seen == list(range(1, answer["unsummarised"]["first"]))


@pytest.mark.parametrize("tokens", [0, 70, 4000])
@pytest.mark.slow
def test_every_message_is_reached(cli: Cli, done: dict[str, Any], tokens: int) -> None:
    assert_all_is_reached(cli, "voyage", tokens)


def test_an_expansion_as_json(cli: Cli, done: dict[str, Any]) -> None:
    found = cli.json("expand", one_of(cli, "condensed")["id"])
    assert set(found) == {"summary", "messages", "children", "truncated", "cursor", "title", "more"}
    assert found["title"].startswith("Entry 0: ")
    assert (found["messages"], found["truncated"], found["cursor"]) == ([], False, None)
    assert {one["parent"] for one in found["children"]} == {found["summary"]["id"]}


def test_describe(cli: Cli, done: dict[str, Any]) -> None:
    leaf = one_of(cli, "leaf")
    text = cli.text("tree", leaf["id"])
    assert f"\n\nSummary  {leaf['id']}\n    1 May 2026\n    " in text
    facts = dict(re.findall(r"^(\w+) +(.*)$", text[text.index("\n\nkind") :], re.MULTILINE))
    assert facts.pop("made").startswith("20")
    assert facts.pop("Read") == f"what is behind it: holdfast expand {leaf['id']}"
    assert facts == {
        "kind": "leaf, depth 0",
        "messages": f"{leaf['ref']}, {leaf['messages']} messages",
        "said": f"2026-05-01 08:00 to 08:{leaf['last'] - 1:02}",
        "tokens": f"{leaf['tokens']} instead of {leaf['source_tokens']:,}",
        "level": "deterministic",
        "model": "none",
        "parents": leaf["parent"],
        "children": "the messages",
    }
    found = cli.json("tree", leaf["parent"])
    assert set(found) == {"summary", "parents", "children", "title"}
    assert found["children"][0] == leaf["id"]
    assert f"children  {', '.join(found['children'])}\n" in cli.text("tree", leaf["parent"])


def test_unknown_ids(cli: Cli, done: dict[str, Any]) -> None:
    leaf = one_of(cli, "leaf")["id"]
    for command in ("expand", "tree"):
        assert cli.complaint(command, "sum_x").startswith("Error: There is no summary 'sum_x' here.\n→ ")
        assert "There is no summary" in cli.complaint(command, leaf, "--tenant", "other")
    assert "a control character" in cli.complaint("expand", "\x1b[31m", "--json")
    assert f"'x' is no cursor of summary {leaf}." in cli.complaint("expand", leaf, "--cursor", "x")
    assert "is no cursor" in cli.complaint("expand", leaf, "--cursor", "999")
    last = str(one_of(cli, "leaf")["last"])
    assert cli.text("expand", leaf, "--cursor", last).endswith("There is no more.\n")


def test_whose_a_summary_is(cli: Cli, done: dict[str, Any]) -> None:
    leaf = one_of(cli, "leaf")["id"]
    assert "(voyage)" in cli.text("tree", leaf, "--user", "bob")  # what all users share, with its title
    assert cli.json("expand", leaf, "--user", "bob")["title"].startswith("Entry 0: ")
    with Memory(cli.db, user="ada", agent="pilot") as memory:
        fill(memory.chat("secret"))
    hint = cli.text("compact", "secret", "--user", "ada", "--agent", "cook", "--budget", "800").splitlines()[
        -1
    ]
    assert hint.endswith("holdfast tree secret --user ada")  # it was not the cook who opened it
    one = cli.json("tree", "secret", "--user", "ada")["summaries"][0]["id"]
    assert "There is no summary" in cli.complaint("expand", one)
    assert "Entry 0: " in cli.text("expand", one, "--user", "ada")


def test_recall_finds_summaries(cli: Cli, done: dict[str, Any]) -> None:
    text = cli.text("recall", "buoy", "Bergen", "--source", "summary", "--limit", "1")
    (hit,) = cli.json("recall", "buoy", "Bergen", "--source", "summary", "--limit", "1")["hits"]
    first, *_, last = text.splitlines()
    assert (hit["source"], hit["kind"] in ("leaf", "condensed")) == ("summary", True)
    assert re.match(r"1\. 0\.\d\d  2026-05-01 08:\d\d  summary  of Entry 0: .*", first)
    assert first.endswith(f"({hit['ref']}, {hit['id']})")
    assert last == f"What is behind the first: holdfast expand {hit['id']}"
    assert "Entry" in cli.text(*last.partition("holdfast ")[2].split())


def test_window_shows_summaries_first(cli: Cli, done: dict[str, Any]) -> None:
    text = cli.text("window", "voyage", "--budget", "800")
    window = cli.json("window", "voyage", "--budget", "800")["window"]
    heads = [line for line in text.splitlines() if line.startswith("voyage#")]
    shown = window["summaries"]
    assert [one["kind"] for one in shown] == [one["kind"] for one in tree_of(cli) if not one["parent"]][::-1]
    assert all(
        f"  summary  {one['id']}  ({one['kind']}, " in head for one, head in zip(shown, heads, strict=False)
    )
    assert len(heads) == len(shown) + len(window["messages"])
    counted = "1 summary" if len(shown) == 1 else f"{len(shown)} summaries"
    assert f"Window: {counted}, {len(window['messages'])} messages, {window['tokens']} of 800 tokens." in text
    assert "Left out" not in text
    text = cli.text("window", "voyage", "--budget", "8000", "--query", "Which buoy was it?")
    assert f"({counted}, {len(window['messages'])} messages), free" in text


def test_stats_count_what_is_summarised(cli: Cli, done: dict[str, Any]) -> None:
    summarised = cli.json("stats", "voyage")["summarised"]
    assert summarised == done["messages"]
    assert f"messages  60, {summarised} of them summarised\n" in cli.text("stats", "voyage")


def test_erase_counts_the_summaries_that_went(cli: Cli, done: dict[str, Any]) -> None:
    before = tree_of(cli)
    last = str(max(one["last"] for one in before))
    text = cli.text("erase", "--chat", "voyage", "--messages", last, "--yes")
    remaining = tree_of(cli)
    assert 0 < len(remaining) < len(before)
    counted = re.match(r"Erased for ever: 1 message, (1 summary|([2-9]) summaries)\.\n", text)
    assert counted is not None
    assert int(counted[2] or 1) >= len(before) - len(
        remaining
    )  # one that had grown counts with what it was before
    assert len(cli.json("show", "voyage", "--limit", "100")["messages"]) == 59
    assert_all_is_reached(cli, "voyage", 300)


@pytest.mark.parametrize("command", ["tree", "tree of one", "expand", "window", "recall"])
def test_a_hostile_summary_reaches_no_command(cli: Cli, command: str, done: dict[str, Any]) -> None:
    with sqlite3.connect(cli.db) as connection:
        connection.execute("UPDATE summaries SET text = ?, model = ?", (HOSTILE * 2, HOSTILE))
    connection.close()
    identity = one_of(cli, "condensed")["id"]
    words = {
        "tree of one": [identity],
        "expand": [identity],
        "recall": ["red gnp", "--source", "summary"],
        "window": ["voyage", "--budget", "800"],
    }
    arguments = [command.split(maxsplit=1)[0], *words.get(command, ["voyage"])]
    result = cli.run(*arguments)
    assert not FORBIDDEN & set(result.output)
    assert "[bold]x[/]" in result.stdout
    assert not re.search(r"^(#9 +2026-01-01|kind      none)", result.stdout, re.MULTILINE)
    raw = cli.run(*arguments, "--json").stdout
    assert not FORBIDDEN & set(raw)
    json.loads(raw)


@pytest.mark.slow
def test_postgres(cli: Cli, postgres_url: str) -> None:
    with Memory(postgres_url) as memory:
        fill(memory.chat("voyage"))
    cli.monkeypatch.setenv("HOLDFAST_DB", postgres_url)
    assert cli.json("compact", "voyage", "--full", "--budget", "800")["nodes"]
    assert_all_is_reached(cli, "voyage", 300)
    assert "not summarised" in cli.text("tree", "voyage")


@pytest.mark.slow
def test_a_long_real_session(shared_data: Path, cli: Cli) -> None:
    session = shared_data / "agent_sessions" / "coding-8fd5765e.jsonl"
    with Memory(cli.db) as memory:
        import_paths(memory, session)
    done = cli.json("compact", session.stem, "--full")
    assert done["tokens_before"] > 200_000
    assert done["tokens_after"] < 6_000
    text = cli.text("tree", session.stem)
    assert all(one["id"] in text for one in done["summaries"])
    assert max(map(len, text.splitlines())) < 220
    assert_all_is_reached(cli, session.stem, 20_000)
    assert cli.json("verify")["ok"]
    assert cli.json("compact", session.stem)["noop"] is True
