"""Importing the tail of a transcript: any sequence of tails is one import of the whole."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Memory, Message
from holdfast_cli.formats.importing import import_paths
from holdfast_cli.hooks import journal
from holdfast_cli.hooks.tail import Imported, TimeIsOver, import_tail
from soak import cases
from transcripts import claude, result, use

Line = dict[str, object]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(journal.STATE, str(tmp_path / "state"))
    return tmp_path / "state"


def add(path: Path, *lines: Line) -> Path:
    with path.open("a") as file:
        file.writelines(f"{json.dumps(line)}\n" for line in lines)
    return path


def words(memory: Memory) -> dict[str, list[tuple[object, ...]]]:
    chats = {info.id for info in memory.chats(archived=None)}
    return {chat: [_one(message) for message in memory.chat(chat).history()] for chat in chats}


def _one(message: Message) -> tuple[object, ...]:
    return message.seq, message.id, message.role, message.content, message.at, message.calls, message.raw


@st.composite
def logs(draw: st.DrawFn) -> list[Line]:
    """Make a log with branches of tools, sub-agents, compactions, and lines of the program."""
    lines: list[Line] = []
    last, side_last = None, None
    for number in range(draw(st.integers(1, 25))):
        match draw(st.sampled_from(("user", "assistant", "tool", "side", "compact", "meta"))):
            case "user":
                lines.append(claude("user", f"u{number}", last, f"question {number}"))
            case "assistant":
                lines.append(claude("assistant", f"a{number}", last, f"answer {number}"))
            case "tool":
                lines.append(claude("assistant", f"t{number}", last, use(f"call{number}")))
                lines.append(claude("user", f"r{number}", f"t{number}", result(f"call{number}", "done")))
                if draw(st.booleans()):
                    lines[-2:] = lines[:-3:-1]
                    last = f"r{number}"
                    continue
            case "side":
                lines.append(claude("assistant", f"s{number}", side_last, f"side {number}", isSidechain=True))
                side_last = f"s{number}"
                continue
            case "compact":
                lines.append(claude("user", f"c{number}", None, "Continued…", isCompactSummary=True))
            case _:
                lines.append(
                    {"type": "progress", "uuid": f"p{number}", "parentUuid": last, "sessionId": "s1"}
                )
        last = str(lines[-1]["uuid"])
    return lines


@pytest.mark.slow
@settings(max_examples=cases(15, 180))
@given(logs(), st.data())
def test_any_sequence_of_tails_is_one_import_of_the_whole(lines: list[Line], data: st.DataObject) -> None:
    """Lines are also cut in their middle, as a client that writes leaves them."""
    text = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    with TemporaryDirectory() as name:
        os.environ[journal.STATE] = f"{name}/state"
        path = Path(name) / "s1.jsonl"
        with Memory(":memory:") as tails, Memory(":memory:") as whole:
            for cut in (*cuts, len(text), len(text)):
                path.write_bytes(text[:cut])
                import_tail(tails, path)
            import_paths(whole, [path]) if lines else None
            assert words(tails) == words(whole)
            assert tails.verify().ok


@settings(max_examples=cases(10, 120))
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30)), min_size=1, max_size=20), st.data())
def test_with_rewinds_tails_are_imports_of_the_whole_at_the_same_moments(
    steps: list[tuple[bool, int]], data: st.DataObject
) -> None:
    """What was imported before its prompt was rewound stays: the log is append-only."""
    lines: list[Line] = [claude("user", "n0", None, "begin")]
    for number, (is_user, parent) in enumerate(steps, 1):
        above = f"n{max(0, number - 1 - parent // 6)}"
        lines.append(claude("user" if is_user else "assistant", f"n{number}", above, f"text {number}"))
    cuts = sorted(data.draw(st.lists(st.integers(1, len(lines)), max_size=4)))
    with TemporaryDirectory() as name:
        os.environ[journal.STATE] = f"{name}/state"
        path = Path(name) / "s1.jsonl"
        with Memory(":memory:") as tails, Memory(":memory:") as whole:
            for cut in (*cuts, len(lines)):
                path.write_text("".join(f"{json.dumps(line)}\n" for line in lines[:cut]))
                import_tail(tails, path)
                import_paths(whole, [path])
                assert by_chat(tails) == by_chat(whole)


def by_chat(memory: Memory) -> dict[str, set[tuple[str, ...]]]:
    return {chat: {_hashable(one[1:]) for one in found} for chat, found in words(memory).items()}


def _hashable(values: tuple[object, ...]) -> tuple[str, ...]:
    return tuple(map(repr, values))


def test_a_result_that_was_written_before_its_call_waits_for_it(quick: Memory, tmp_path: Path) -> None:
    call, answer = claude("assistant", "t1", "u1", use("c1")), claude("user", "r1", "t1", result("c1"))
    path = add(tmp_path / "s1.jsonl", claude("user", "u1", None, "go"), answer)
    assert import_tail(quick, path) == Imported(1, ())
    assert import_tail(quick, path) == Imported()
    add(path, call)
    assert import_tail(quick, path) == Imported(2, ())
    add(path, answer | {"uuid": "r0", "message": {"role": "user", "content": result("never")}})
    assert import_tail(quick, path) == Imported()
    add(path, claude("assistant", "a1", "r1", "Done."))
    assert import_tail(quick, path) == Imported(2, ())
    said = quick.chat("s1").history()
    assert [one.id for one in said] == ["u1", "t1", "r1", "r0", "a1"]
    assert [one.answers for one in said if one.role == "tool"] == [("c1",), ()]


def test_only_what_is_new_is_read(quick: Memory, tmp_path: Path) -> None:
    path, seen = add(tmp_path / "s1.jsonl", claude("user", "u1", None, "one")), []

    def rewrite(item):  # type: ignore[no-untyped-def]
        seen.append(item.message.content)
        return item

    assert import_tail(quick, path) == Imported(1, ())
    add(path, claude("assistant", "a1", "u1", "two"))
    assert import_tail(quick, path, rewrite=rewrite) == Imported(1, ())
    assert import_tail(quick, path, rewrite=rewrite) == Imported(0, ())
    assert seen == ["two"]


@pytest.mark.parametrize("change", ["shorter", "other", "gone"])
def test_a_file_that_was_replaced_is_read_from_its_beginning(
    quick: Memory, tmp_path: Path, change: str
) -> None:
    first = [claude("user", f"u{n}", f"u{n - 1}" if n else None, f"question {n}") for n in range(5)]
    path = add(tmp_path / "s1.jsonl", *first)
    import_tail(quick, path)
    path.unlink()
    if change == "gone":
        assert import_tail(quick, path) == Imported()
        return
    other = [claude("user", "v0", None, "something else")]
    add(path, *(first[:2] if change == "shorter" else first[:4] * 3), *other)
    import_tail(quick, path)
    texts = [message.content for message in quick.chat("s1").history()]
    assert texts.count("something else") == 1
    assert len(texts) == len(set(texts)) == 6


DAMAGE = (b"", b"{", b'{"start": 0}', b"\xff\xfe", b"[" * 10_000, b'{"start":0,"first":0,"nodes":[[1]]}')


def test_damage_to_what_is_remembered_costs_a_whole_import_only(tmp_path: Path, state: Path) -> None:
    path = add(tmp_path / "s1.jsonl", claude("user", "u1", None, "one"))
    with Memory(":memory:") as memory:
        for damage in DAMAGE:
            import_tail(memory, path)
            (remembered,) = (state / "tails").glob("*.jsonl")
            remembered.write_bytes(damage)
            import_tail(memory, path)
        assert [message.content for message in memory.chat("s1").history()] == ["one"]
    # What is remembered of a database that is gone counts no more.
    with Memory(":memory:") as memory:
        assert import_tail(memory, path).added == 1


def test_an_import_that_runs_out_of_time_is_completed_by_the_next(quick: Memory, tmp_path: Path) -> None:
    path = add(tmp_path / "s1.jsonl", *(claude("user", f"u{n}", None, f"question {n}") for n in range(1)))
    add(path, *(claude("assistant", f"a{n}", f"a{n - 1}" if n else "u0", f"answer {n}") for n in range(1200)))
    left = iter(range(700))

    def check_time() -> None:
        if next(left, None) is None:
            raise TimeIsOver

    with pytest.raises(TimeIsOver):
        import_tail(quick, path, check_time=check_time)
    assert quick.chat("s1").stats().messages == 500
    assert import_tail(quick, path).added == 701


def test_a_pipe_is_not_waited_for(quick: Memory, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "s1.jsonl")
    assert import_tail(quick, tmp_path / "s1.jsonl") == Imported()


IMPORT = """
import sys
from pathlib import Path
from holdfast import Memory
from holdfast_cli.hooks.tail import import_tail
with Memory(sys.argv[1]) as memory:
    import_tail(memory, Path(sys.argv[2]))
"""


def importing(db: Path, path: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", IMPORT, db, path])


@pytest.mark.slow
def test_imports_of_one_transcript_at_the_same_time_store_each_message_once(tmp_path: Path) -> None:
    db = tmp_path / "m.db"
    path = add(tmp_path / "s1.jsonl", claude("user", "a0", None, "begin"))
    add(path, *(claude("assistant", f"a{n}", f"a{n - 1}", f"answer {n}") for n in range(1, 300)))
    programs = [importing(db, path) for _ in range(4)]
    assert [program.wait() for program in programs] == [0] * 4
    with Memory(db) as memory:
        import_tail(memory, path)
        assert [message.id for message in memory.chat("s1").history()] == [f"a{n}" for n in range(300)]
        assert memory.verify().ok


@pytest.mark.slow
def test_a_killed_import_loses_and_doubles_nothing(tmp_path: Path) -> None:
    db = tmp_path / "m.db"
    path = add(tmp_path / "s1.jsonl", claude("user", "a0", None, "begin"))
    add(path, *(claude("assistant", f"a{n}", f"a{n - 1}", f"answer {n}") for n in range(1, 6000)))
    for _ in range(6):
        program = importing(db, path)
        before = _stored(db)
        while program.poll() is None and _stored(db) <= before:
            time.sleep(0.01)  # it is killed in the middle of its work, whenever that is
        program.send_signal(signal.SIGKILL)
        program.wait()
    assert importing(db, path).wait() == 0
    with Memory(db) as memory:
        assert [message.id for message in memory.chat("s1").history()] == [f"a{n}" for n in range(6000)]
        assert memory.verify().ok


def _stored(db: Path) -> int:
    if not db.exists():
        return 0
    with Memory(db) as memory:
        return memory.chat("s1").stats().messages
