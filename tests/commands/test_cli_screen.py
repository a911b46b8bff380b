from __future__ import annotations

import io
import json
import time
from datetime import UTC, datetime
from pathlib import Path
from unicodedata import normalize

import pytest
from cli_runs import FORBIDDEN, Cli, Terminal
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Memory
from holdfast.text.snippet import find
from holdfast_cli.commands.arguments import read_end, read_time
from holdfast_cli.commands.render.excerpt import WIDTH, excerpt
from holdfast_cli.commands.render.messages import cut
from holdfast_cli.commands.render.screen import Screen, count, safe, size, when

HOSTILE = (
    "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x1b[0m \x9b31m \u202egnp.exe\x07\x08 [bold]not markup[/] :smile: end"
)


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    return Cli(tmp_path, monkeypatch)


@given(st.text(st.characters(max_codepoint=0x20FF), max_size=60))
def test_no_text_can_drive_the_terminal(text: str) -> None:
    assert not FORBIDDEN & set(safe(text))


def test_what_is_harmless_stays() -> None:
    assert (
        safe("plain, Grüße, 日本語, 😀, عربي\n\tindented\r\n")
        == "plain, Grüße, 日本語, 😀, عربي\n\tindented\n"
    )
    assert safe("\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x1b\\link\x1b]8;;\x07") == "red link"
    assert safe("\x1b[\x1b[31m31m\x07\x7f") == "␛[31m␇␡"


@pytest.mark.parametrize(
    "words",
    [
        ("show", "hostile"),
        ("recall", "red", "end"),
        ("window", "hostile"),
        ("window", "hostile", "--query", "red"),
        ("chats",),
        ("stats", "hostile"),
        ("show", "\x1b[31mnobody"),
    ],
)
def test_a_hostile_transcript_reaches_no_command(cli: Cli, words: tuple[str, ...]) -> None:
    with Memory(cli.db) as memory:
        memory.chat("hostile").append(role="user", content=HOSTILE, name="[red]mallory[/]")
        memory.chat("hostile").append({"role": "tool", "content": HOSTILE * 100, "tool_call_id": "x"})
    cli.with_database()
    if words[-1].endswith("nobody"):
        assert "a control character" in cli.complaint(*words)
        return
    result = cli.run(*words)
    assert not FORBIDDEN & set(result.output)
    if words[0] in ("show", "window", "recall"):
        assert "[bold]not markup[/] :smile: end" in result.stdout
    raw = cli.run(*words, "--json").stdout
    assert not FORBIDDEN & set(raw)
    json.loads(raw)


@pytest.mark.slow
def test_json_is_ascii_where_the_stream_is_not_unicode(cli: Cli) -> None:
    with Memory(cli.db) as memory:
        memory.chat("c").append(role="user", content="Grüße 😀 日本")
    cli.with_database().monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
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


def test_a_pipe_gets_whole_lines() -> None:
    stream = io.StringIO()
    screen = Screen(stream)
    screen.say("word " * 100, indent=2)
    screen.table({"id": ["x" * 300, "y"], "n": ["1", "22"]})
    lines = stream.getvalue().splitlines()
    assert lines[0] == "  " + ("word " * 100).rstrip()
    assert lines[2] == "x" * 300 + "   1"
    assert all(line == line.rstrip() for line in lines)


def test_times_are_those_of_the_wall(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    assert when(datetime(2026, 5, 1, 20, 0, tzinfo=UTC)) == "2026-05-02 05:00"
    assert read_time("2026-05-02") == datetime(2026, 5, 1, 15, 0, tzinfo=UTC)
    assert read_end("2026-05-02") == datetime(2026, 5, 2, 15, 0, tzinfo=UTC)
    assert read_end("2026-05-02T10:00:00+00:00") == datetime(2026, 5, 2, 10, 0, tzinfo=UTC)
    assert when(None) == "–"
    assert when(datetime.max.replace(tzinfo=UTC)).startswith("9999")
    monkeypatch.undo()
    time.tzset()


def test_numbers_are_for_people() -> None:
    assert [count(1, "chat"), count(0, "chat"), count(1204, "chat")] == ["1 chat", "0 chats", "1,204 chats"]
    assert [size(12), size(2048), size(5 << 20), size(3 << 30)] == [
        "12 bytes",
        "2.0 KiB",
        "5.0 MiB",
        "3.0 GiB",
    ]


def test_long_texts_are_cut_and_say_so() -> None:
    assert cut("short", 2, 10) == ("short", "")
    assert cut("a\nb\nc\nd", 2, 10) == ("a\nb", "2 lines")
    assert cut("x" * 12, 2, 10) == ("x" * 10, "2 characters")
    assert cut("", 2, 10) == ("", "")


def marked(text: str, *words: str) -> list[str]:
    return [text[first:last] for first, last in find(text, words)]


def test_words_are_marked_in_all_their_forms() -> None:
    assert marked("She runs, he RAN, the runner", "running") == ["runs", "RAN"]
    assert marked("call parse_http_header() now", "parse_http_header") == ["parse_http_header"]
    assert marked("call parse_http_header() now", "http") == ["http"]
    assert marked("Ein Café in München", "cafe", "munchen") == ["Café", "München"]
    assert marked("私は東京に住んでいます", "東", "京", "東京") == ["東京"]
    assert marked("my brother", "like sibling") == ["brother"]
    assert marked("", "word") == []


@given(st.text(max_size=800), st.lists(st.text(max_size=8), max_size=4))
def test_an_excerpt_is_a_part_of_the_text(text: str, words: list[str]) -> None:
    parts = [part if isinstance(part, str) else part[0] for part in excerpt(text, words)]
    shown = "".join(parts)
    whole = normalize("NFC", " ".join(safe(text).split()))
    assert len(shown) <= WIDTH + 2
    assert shown.removeprefix("…").removesuffix("…") in whole or shown in whole
    if len(whole) <= WIDTH:
        assert shown == whole


@pytest.mark.parametrize("text", ["The Cafe\u0301 closed", "\uf900 The caf\u00e9 closed"])
def test_letters_of_several_characters_are_marked(text: str) -> None:
    assert ("Caf\u00e9".casefold(), True) in [
        (p[0].casefold(), True) for p in excerpt(text, ["cafe"]) if isinstance(p, tuple)
    ]


def test_an_excerpt_shows_the_part_that_matched() -> None:
    text = "filler words " * 200 + "the golden KEY is under the mat " + "more filler " * 200
    parts = excerpt(text, ["key", "mat"])
    assert [part[0] for part in parts if isinstance(part, tuple)] == ["KEY", "mat"]
    assert parts[0] == "…"
    assert parts[-1] == "…"
    focused = excerpt(text, ["filler"], focus="golden KEY")
    assert "golden KEY" in [part[0] for part in focused if isinstance(part, tuple)]
