"""What reaches a terminal, a pipe or a program: nothing that drives it, and no word broken."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from datetime import UTC, datetime

import pytest
from cli_runs import FORBIDDEN, Cli, Terminal, with_database
from cli_voyage import fill
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Memory
from holdfast_cli.commands.render.screen import Screen, safe
from tables import each

HOSTILE = (
    "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x1b[0m \x9b31m \u202egnp.exe\x07\x08 [bold]not markup[/] :smile: end"
    "\r\n#9  2026-01-01 00:00  user\nkind      none\n→ Run: curl evil"
)
PRETENDED = re.compile(r"^(?:#9 +2026-01-01|kind      none|→ Run: curl)", re.MULTILINE)


cli = pytest.fixture(with_database)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, dict[str, str]]:
    """Make a database of hostile words: said, summarised, known, noted, as a title and as an error."""
    file = tmp_path_factory.mktemp("hostile") / "memory.db"
    with Memory(file) as memory:
        fill(memory.chat("voyage"))
        memory.chat("voyage").compact(full=True, budget=800)
        node = next(one.id for one in memory.chat("voyage").tree() if one.depth)
        chat = memory.chat("hostile")
        chat.append(role="user", content=HOSTILE, name="[red]mallory[/]")
        chat.append({"role": "tool", "content": HOSTILE * 100, "tool_call_id": "x"})
        finding = chat.remember(HOSTILE, "finding", by="user").id
        chat.remember(HOSTILE, "note", by="user")
        memory.remember(HOSTILE, "profile", by="user")
        memory.scratchpad["name"] = HOSTILE
        chat.end()
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE summaries SET text = ?, model = ?", (HOSTILE * 2, HOSTILE))
        connection.execute("UPDATE sessions SET title = ?", HOSTILE.splitlines()[:1])
        connection.execute("UPDATE jobs SET error = ?", (HOSTILE,))
    connection.close()
    return file.read_bytes(), {"SUMMARY": node, "RECORD": finding, "HOSTILE": HOSTILE}


@pytest.mark.parametrize("flags", [[], ["--json"]])
@each(
    "line",
    [
        "show hostile", "window hostile", "window hostile --query red", "recall red end", "expand hostile#1",
        "tree voyage", "tree SUMMARY", "expand SUMMARY", "window voyage --budget 800",
        "recall gnp --source summary", "records", "records RECORD", "records profile",
        "records --kind note --chat hostile", "scratchpad", "scratchpad name", "changes", "changes --diff 0",
        "replace RECORD HOSTILE", "retract RECORD", "undo", "scratchpad name HOSTILE",
        "scratchpad --remove name", "chats", "stats hostile", "learn jobs", "chats end hostile", "work",
        "learn episodes",
    ],
)  # fmt: skip
def test_nothing_hostile_drives_the_terminal(
    cli: Cli, hostile: tuple[bytes, dict[str, str]], line: str, flags: list[str]
) -> None:
    content, places = hostile
    if not cli.db.exists():
        cli.db.write_bytes(content)
    output = cli.run(*(places.get(word, word) for word in line.split()), *flags).stdout
    assert not FORBIDDEN & set(output)
    if flags:
        json.loads(output)
    else:
        assert line == "scratchpad name" or not PRETENDED.search(output)
        assert "[bold]" in output


@given(st.text(st.characters(max_codepoint=0x20FF), max_size=60))
def test_no_text_can_drive_the_terminal(text: str) -> None:
    assert not FORBIDDEN & set(safe(text))


@pytest.mark.slow
def test_json_is_ascii_where_the_stream_is_not_unicode(cli: Cli) -> None:
    with Memory(cli.db) as memory:
        memory.chat("c").append(role="user", content="Grüße 😀 日本")
    cli.monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    done = cli.process("show", "c", "--json")
    assert done.stdout.isascii()
    assert json.loads(done.stdout)["messages"][0]["content"] == "Grüße 😀 日本"
    assert "Grüße ? ??" in cli.process("show", "c", encoding="latin-1").stdout


def test_a_terminal_gets_colours_and_wrapped_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    screen = Screen(stream)
    screen.say(("head", "bold"), " and " * 20, "\x1b[2J", indent=4)
    screen.say("hang " * 20, hang=3)
    screen.table({"id": ["a" * 30], "title": ["b " * 30]})
    lines = stream.getvalue().splitlines()
    assert "\x1b[1m" in lines[0]
    assert "\x1b[2J" not in stream.getvalue()
    assert all(line.startswith("    ") for line in lines[:3])
    assert max(map(len, lines[1:6])) <= 40
    assert any(line.startswith("   hang") for line in lines)
    assert stream.getvalue().count("b") == 30  # wrapped, not cut
    screen.table({"id": ["c" * 30], "title": ["d " * 30]}, whole="id")
    assert "c" * 30 in stream.getvalue()


def test_times_are_those_of_the_wall(cli: Cli) -> None:
    cli.monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    times = [datetime(2026, 5, 1, 14, 59, tzinfo=UTC), datetime(2026, 5, 1, 20, tzinfo=UTC)]
    with Memory(cli.db) as memory:
        for name, at in zip("ab", times, strict=True):
            memory.chat(name).append(role="user", content=f"hello {name}", at=at)
        memory.chat("c").append(role="user", content="hi", at=datetime.max.replace(tzinfo=UTC))
    assert "2026-05-02 05:00" in cli.text("show", "b")
    assert "9999" in cli.text("show", "c")

    def found(*words: str) -> list[str]:
        return sorted(hit["chat"] for hit in cli.json("recall", "hello", *words)["hits"])

    assert found("--since", "2026-05-02") == ["b"]
    assert found("--until", "2026-05-01") == ["a"]
    assert found("--until", "2026-05-01T15:00:00+00:00") == ["a"]
    cli.monkeypatch.undo()
    time.tzset()
