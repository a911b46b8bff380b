from __future__ import annotations

import json
import os
import random
import zipfile
from copy import copy
from pathlib import Path
from typing import Any

import pytest

from holdfast import InvalidInput, Memory, NewerSchema, UnknownFormat
from holdfast_cli.formats import files
from holdfast_cli.formats.importing import import_paths, import_tables
from soak import cases
from tables import each
from transcripts import chatgpt, claude, said, take, write_json, write_lines

TALK = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]


def test_the_content_tells_the_format_and_the_name_does_not(tmp_path: Path) -> None:
    chat = chatgpt([("a", None, said("a", "user", "Hi"))], "a")
    for path, format in (
        (write_lines(tmp_path / "a.txt", [claude("user", "u", None, "x")]), "Claude Code"),
        (write_lines(tmp_path / "b.json", TALK), "JSONL"),
        (write_json(tmp_path / "c.jsonl", TALK), "JSON"),
        (write_json(tmp_path / "d.jsonl", [chat]), "ChatGPT"),
        (write_json(tmp_path / "e", chat, indent=1), "ChatGPT"),
    ):
        assert take(path).report.formats.keys() == {format}


@each("start", ['t":"half a line"}', '{"role": "user", "cont', ""])
def test_a_broken_beginning_does_not_hide_the_format(tmp_path: Path, start: str) -> None:
    assert take(write_lines(tmp_path / "x.jsonl", [start, *TALK])).contents == ["Hi", "Hello"]


@pytest.mark.parametrize("refused", ["edits.md", "newer.jsonl", "agents.jsonl", "dangling.jsonl", "pipe"])
def test_one_of_several_paths_that_is_refused_does_not_stop_the_others(tmp_path: Path, refused: str) -> None:
    good, path = write_lines(tmp_path / "good.jsonl", TALK), tmp_path / refused
    if refused == "pipe":
        os.mkfifo(path)
    elif refused == "dangling.jsonl":
        path.symlink_to("nowhere")
    else:
        schema = 99_999 if refused == "newer.jsonl" else 1
        start = "<!-- Holdfast records -->" if refused == "edits.md" else ""
        path.write_text(start or json.dumps({"holdfast": "everything", "schema": schema}))
    with Memory(":memory:", agent="coach" if refused == "agents.jsonl" else "") as memory:
        report = import_paths(memory, [path, good])
        assert (report.added, [one.path for one in report.problems]) == (2, [str(path)])
        assert not report.problems[0].reason.startswith(repr(str(path)))
        with pytest.raises((InvalidInput, NewerSchema)):
            import_paths(memory, path)


@each("paths", [5, ["a", b"b"], "nul\x00byte", "a" * 5000, "x/" * 3000])
def test_what_is_no_path_is_refused_by_a_typed_error(quick: Memory, paths: Any) -> None:
    with pytest.raises(InvalidInput):
        import_paths(quick, paths)
    with pytest.raises(InvalidInput):
        import_tables(quick, paths, {"content": "text"})


def test_a_folder_is_walked_in_order_and_other_files_are_passed_over(quick: Memory, tmp_path: Path) -> None:
    for name in ("b/two.jsonl", "a/one.JSONL", "top.ndjson"):
        write_lines(tmp_path / name, TALK)
    for name in ("b/notes.txt", "b/picture.png", "b/log"):
        (tmp_path / name).write_text("{}")
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "loop").symlink_to(tmp_path)
    told: list[str] = []
    report = import_paths(quick, tmp_path, lambda one: told.append(Path(one.path).name))
    assert ([*dict.fromkeys(told)], report.skipped) == (["top.ndjson", "one.JSONL", "two.jsonl"], ())
    with pytest.raises(InvalidInput):
        import_paths(quick, tmp_path / "pipe.jsonl", print)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that Linux has")
def test_a_file_that_raises_when_it_is_read_is_named(quick: Memory, tmp_path: Path) -> None:
    for path in (Path("/proc/self/mem"), tmp_path / "link.jsonl", tmp_path / "link.md"):
        if not path.exists():
            path.symlink_to("/proc/self/mem")
        with pytest.raises(InvalidInput, match="cannot be read"):
            import_paths(quick, path)


def test_zips_are_read_alone_and_in_folders(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "logs.zip", "w") as archive:
        archive.writestr("x/talk.jsonl", "".join(json.dumps(line) + "\n" for line in TALK))
        archive.writestr("../../escape.jsonl", json.dumps(TALK[0]))
        archive.writestr("readme.txt", "hi")
        archive.writestr("inner.zip", b"PK")
    assert take(tmp_path / "logs.zip").chats.keys() == {"../../escape", "x/talk"}
    assert take(tmp_path).chats.keys() == {"logs/../../escape", "logs/x/talk"}
    assert [path.name for path in tmp_path.iterdir()] == ["logs.zip"]
    assert not (tmp_path.parent.parent / "escape.jsonl").exists()


@pytest.mark.parametrize("end", [-10, -200, None])
def test_a_zip_that_is_cut_or_damaged_is_named_and_nothing_of_it_taken(
    tmp_path: Path, end: int | None
) -> None:
    path, what = tmp_path / "talks.zip", "a zip that is damaged or cut off"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("talk.jsonl", "other.jsonl"):
            archive.writestr(name, "".join(json.dumps(line) + "\n" for line in TALK))
    data = path.read_bytes()
    path.write_bytes(data[:end] if end else data.replace(b"PK\x01\x02", b"PK\x09\x09"))
    with pytest.raises(UnknownFormat, match=what):
        take(path)
    path.with_suffix(".jsonl").write_bytes(path.read_bytes())
    taken = take(tmp_path)
    assert (taken.left, taken.chats) == ([(0, what)] * 2, {})


def test_zip_bombs_and_damaged_zips_are_reported(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.jsonl", b'{"role": "user", "content": "' + b" " * (20 << 20) + b'"}')
        archive.writestr("good.jsonl", json.dumps(TALK[0]))
    with zipfile.ZipFile(tmp_path / "odd.zip", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("lzma.jsonl", json.dumps(TALK[0]))
    taken = take(tmp_path)
    assert taken.by_chat == {"bomb/good": ["Hi"]}
    reasons = {Path(one.path).name: one.reason for one in taken.report.problems}
    assert set(reasons) == {"bomb.jsonl", "lzma.jsonl"}
    assert reasons["bomb.jsonl"].startswith("shrunk too much")


def test_files_of_a_zip_that_share_what_they_are_unpacked_from_count_each(tmp_path: Path) -> None:
    path = tmp_path / "overlap.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("first.jsonl", " " * (12 << 20) + random.Random(7).randbytes(60_000).hex())
        info = archive.getinfo("first.jsonl")
        for number in range(2):
            again = copy(info)
            again.filename = f"{number}.jsonl"
            archive.filelist.append(again)
    with pytest.raises(InvalidInput, match="times its own size, of at most 100"):
        take(path)
    write_lines(tmp_path / "talk.jsonl", TALK)
    report = take(tmp_path).report
    assert report.added == len(TALK)
    assert [one.path for one in report.problems if "of at most 100" in one.reason] == [str(path)]


def test_a_zip_with_any_damage_does_not_crash(quick: Memory, tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("talk.jsonl", "".join(json.dumps(line) + "\n" for line in TALK * 20))
        archive.writestr("c.json", json.dumps([{"mapping": {}}] * 50))
    whole = path.read_bytes()
    rng = random.Random(7)
    for _ in range(cases(60, 400)):
        damaged = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        path.write_bytes(damaged)
        import_paths(quick, tmp_path)  # a folder, so that everything is a report


GEMINI = {"sessionId": "g", "projectHash": "h", "messages": [{"id": "1", "type": "user", "content": "Hi"}]}


@each(
    ("value", "indent"),
    [
        (GEMINI, None),
        (GEMINI, 1),
        ({"id": "s", "messages": TALK}, None),
        ([{"messages": TALK}], None),
        (TALK[:1], None),
        ([{"title": "x", "mapping": {'a, "]': {"id": "b"}}}], None),
        (claude("user", "u", None, "Hi"), None),
    ],
)
def test_a_session_that_is_cut_is_a_problem_in_a_folder_too(
    tmp_path: Path, value: object, indent: int | None
) -> None:
    path, text = tmp_path / "cut.json", json.dumps(value, indent=indent)
    for damaged in (text[:-3], text[:-9] + "\0" + text[-9:]):
        path.write_text(damaged)
        (problem,) = take(tmp_path).report.problems
        assert (problem.path, problem.count, problem.reason) == (str(path), 1, "not valid JSON")
        with pytest.raises(UnknownFormat, match="damaged or cut off"):
            take(path)


def test_a_json_array_is_read_a_value_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_CHUNK", 7)
    texts = ["é" * 50, '1, [2, {"b": ', '\\"', "]"]
    path, lines = tmp_path / "x.json", [{"role": "user", "content": text, "n": 10**19} for text in texts]
    for indent in (None, 3):
        path.write_text("\ufeff " + json.dumps(lines, indent=indent, ensure_ascii=False), encoding="utf-8")
        assert take(path).contents == texts


def test_a_damaged_json_array_gives_what_stands_before_the_damage(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    session = json.dumps({"id": "s", "messages": TALK})
    rest = "; the rest of the file was not read"
    for end, reason in (
        (b'{"id": "t", "mess', f"not valid JSON{rest}"),
        (b"", "cut off"),
        (b"nonsense]", f"not valid JSON{rest}"),
        (b"[" * 200_000, f"nested too deeply{rest}"),
        (b"1" * 5000 + b"]", "neither a message nor a session"),
    ):
        path.write_bytes(b"[" + session.encode() + b"," + end)
        taken = take(path)
        assert (taken.contents, taken.left) == (["Hi", "Hello"], [(2, reason)])
    path.write_bytes(b'[{"id": "\xff", "messages": []}, ' + session.encode() + b"]")
    assert take(path).left == [(1, "not valid UTF-8")]
