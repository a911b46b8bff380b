"""CSV and JSONL of any program, by a mapping: each row once, and every row that is none by its line."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import InvalidInput, Memory
from holdfast_cli.formats.importing import import_tables
from soak import cases
from tables import each
from transcripts import write_lines

COLUMNS = {"content": "text", "role": "speaker", "at": "time", "chat": "talk"}
TABLE = '''text,speaker,time,talk,mood
"Hello, all",user,2026-01-02T03:04:05Z,one,glad
"Two
lines ""quoted""",AI,1767323045,one,
,user,2026-01-02,one,sad
hi,clown,2026-01-02,one,sad
hi,user,never,one,sad
hi,user
Bye,user,2026-01-03,two,glad
Bye,user,2026-01-03,two,glad
'''


def words(memory: Memory, chat: str) -> list[tuple[str, str]]:
    return [(one.role, one.content) for one in memory.chat(chat).history()]


def lines_of(report: object) -> list[tuple[str, tuple[int, ...]]]:
    return [(one.reason, one.lines) for one in getattr(report, "problems", ())]


def test_rows_become_messages_once_and_bad_rows_are_counted_by_line(memory: Memory, tmp_path: Path) -> None:
    path, bad = tmp_path / "talk.csv", tmp_path / "bad.csv"
    path.write_text(TABLE, encoding="utf-8")
    bad.write_text("words\nhi\n")
    report = import_tables(memory, [bad, path], COLUMNS)
    assert (report.added, report.sessions, report.formats) == (4, 2, {"CSV": 4})
    # One that does not fit does not stop the others.
    assert lines_of(report)[0] == ("has no column 'text'", (0,))
    assert [lines for _, lines in lines_of(report)[1:]] == [(5,), (6,), (7,), (8,)]
    assert lines_of(report)[4][0] == "a row of 2 columns, where the first one has 5"
    assert words(memory, "one") == [("user", "Hello, all"), ("assistant", 'Two\nlines "quoted"')]
    first, second = memory.chat("one").history()
    assert (first.at, second.at) == (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),) * 2
    assert (first.meta, first.raw) == ({}, None)
    # Both of two equal rows are said; once more they are known, wherever they stand by then.
    assert words(memory, "two") == [("user", "Bye")] * 2
    head, _, rest = TABLE.partition("\n")
    path.write_text(f"{head}\nNew,user,2026-01-01,one,glad\n{rest}", encoding="utf-8")
    report = import_tables(memory, path, COLUMNS)
    assert (report.added, report.present) == (1, 4)
    # Another mapping reads the same file again, and so does another name.
    assert import_tables(memory, path, {**COLUMNS, "meta": "*"}).present == 5
    assert import_tables(memory, path.rename(tmp_path / "again.csv"), COLUMNS).added == 0
    path.write_text("text;mood;n\nhi;glad;\n")
    import_tables(memory, path, {"content": "text", "meta": "*"})
    (message,) = memory.chat("talk").history()
    assert (message.meta, message.role) == ({"mood": "glad"}, "user")


def test_rows_become_records_that_follow_their_id(memory: Memory, tmp_path: Path) -> None:
    path, head = tmp_path / "facts.tsv", "no\twhat\tkind\tarea\ttags\n"
    columns = {"text": "what", "kind": "kind", "category": "area", "tags": "tags", "id": "no"}
    path.write_text(f"{head}1\tDrinks tea\t\tfood\thot, drink\n2\tx\tnonsense\t\t\n3\t \t\t\t\n")
    report = import_tables(memory, path, columns)
    assert (report.records, [lines for _, lines in lines_of(report)]) == (1, [(4,), (3,)])
    (tea,) = memory.records()
    assert (tea.text, tea.kind, tea.category) == ("Drinks tea", "fact", "food")
    assert (tea.tags, tea.by) == (("hot", "drink"), "import")
    path.write_text(f"{head}1\tDrinks coffee\t\tfood\thot\n")
    assert import_tables(memory, path, columns).records == 1
    assert [(one.id, one.text) for one in memory.records()] == [(tea.id, "Drinks coffee")]


def test_rows_of_one_source_or_id_that_say_different_things_are_all_stored(
    memory: Memory, tmp_path: Path
) -> None:
    path = tmp_path / "facts.csv"
    path.write_text("no,what,from\n1,Drinks tea,crm\n2,Has a dog,crm\n2,Has a dog,crm\n")
    for name, column in (("source", "from"), ("id", "no")):
        columns = {"text": "what", name: column}
        assert import_tables(memory.scoped(user=name), path, columns).records == 2
        again = import_tables(memory.scoped(user=name), path, columns)
        assert (again.records, again.records_present) == (0, 2)
    path.write_text("no,what\n1,Drinks tea\n1,Has a cat\n")
    assert import_tables(memory.scoped(user="id"), path, {"text": "what", "id": "no"}).records == 1


def test_objects_of_jsonl(quick: Memory, tmp_path: Path) -> None:
    rows: list[object] = [
        {"message": {"text": "hi"}, "t": 1767323045.5, "who": "human", "x": [1], "n": ""},
        {"message": {"text": 7}},
        {"message": None},
        "text",
    ]
    columns = {"content": "message.text", "role": "who", "at": "t", "meta": "*"}
    report = import_tables(quick, write_lines(tmp_path / "talk.jsonl", map(json.dumps, rows)), columns)
    assert words(quick, "talk") == [("user", "hi"), ("user", "7")]
    assert quick.chat("talk").history()[0].meta["x"] == [1]
    assert lines_of(report) == [("The message is empty.", (3,)), ("not a JSON object", (4,))]


@each(("encoding", "newline"), [("utf-8", "\n"), ("utf-8-sig", "\r\n"), ("utf-16", "\r"), ("cp1252", "\n")])
def test_encodings_and_ends_of_lines(tmp_path: Path, encoding: str, newline: str) -> None:
    path = tmp_path / "talk.csv"
    path.write_bytes(newline.join(["text", "Grüße", '"a"', ""]).encode(encoding))
    given = encoding if encoding == "cp1252" else "utf-8"
    with Memory(":memory:") as memory:
        assert import_tables(memory, path, {"content": "text"}, encoding=given).added == 2
        assert words(memory, "talk")[0] == ("user", "Grüße")


@pytest.mark.slow
def test_hostile_tables(quick: Memory, tmp_path: Path) -> None:
    path = tmp_path / "talk.csv"
    columns = {"content": "text"}
    path.write_bytes(b"text,b\ngood,1\nb\xe4d,2\nx\x00y,3\n" + b'"' + b"z" * 200_000 + b'",4\n')
    report = import_tables(quick, path, columns)
    assert (report.added, lines_of(report)) == (3, [("not valid in this encoding", (3,))])
    assert [len(content) for _, content in words(quick, "talk")] == [4, 3, 200_000]
    path.write_bytes(b'text\nfine\n"never closed\n' + (b"x" * 999 + b"\n") * 17_000)
    report = import_tables(quick, path, columns)
    assert (report.added, [lines for _, lines in lines_of(report)]) == (1, [(3,)])
    for data in (b"", b"text\n", b"\n\n", b"\xff\xfe"):
        path.write_bytes(data)
        assert import_tables(quick, path, columns).added == 0


CELLS = st.one_of(st.text(max_size=8), st.sampled_from(['"', ",", "\n", "\r\n", "a;b", "\x00", "user", " "]))


@settings(max_examples=cases(15, 180))
@given(st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=8))
def test_any_table_loses_no_row_silently_and_adds_none_twice(rows: list[tuple[str, str, str]]) -> None:
    stream = io.StringIO(newline="")
    csv.writer(stream).writerows([("text", "chat", "x"), *rows])
    with Memory(":memory:", user="ada") as memory, TemporaryDirectory() as folder:
        path = Path(folder, "t.csv")
        path.write_bytes(stream.getvalue().encode("utf-8", "replace"))
        columns = {"content": "text", "chat": "chat"}
        report = import_tables(memory, path, columns)
        assert report.added + sum(one.count for one in report.problems) == len(rows)
        assert import_tables(memory, path, {**columns, "meta": "*"}).added == 0


TELEGRAM = {
    "name": "Choir",
    "messages": [
        {"id": 1, "type": "service", "date_unixtime": "1769940000", "text": ""},
        {"id": 2, "date_unixtime": "1769940060", "from": "Ida", "text": "Rehearsal moves."},
        {
            "id": 3,
            "date_unixtime": "1769940120",
            "from": "Bo",
            "text": ["See ", {"type": "link", "text": "a.example"}],
        },
        "no row",
    ],
}
PATHS = {"content": "text", "name": "from", "at": "date_unixtime", "id": "id", "chat": "^.name"}


@each(
    ("document", "rows"), [(TELEGRAM, "messages"), ({"chats": {"list": [TELEGRAM]}}, "chats.list.messages")]
)
def test_rows_within_a_json_file_are_found_by_a_path(tmp_path: Path, document: object, rows: str) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps(document))
    with Memory(":memory:") as memory:
        report = import_tables(memory, path, {**PATHS, "rows": rows})
        assert sorted(lines_of(report)) == [("The message is empty.", (1,)), (f"no object at '{rows}'", (4,))]
        assert words(memory, "Choir") == [("user", "Rehearsal moves."), ("user", "See a.example")]
        first = memory.chat("Choir").history()[0]
        assert (first.name, first.id, str(first.at)) == ("Ida", "2", "2026-02-01 10:01:00+00:00")
        assert import_tables(memory, path, {**PATHS, "rows": rows}).added == 0


def test_a_field_that_no_row_has_is_named_and_a_constant_is_in_all(quick: Memory, tmp_path: Path) -> None:
    path = tmp_path / "2026-02-01.json"
    path.write_text(json.dumps([{"user": "U1", "text": "Hi", "ts": "1769940060.000100"}]))
    columns = {"content": "text", "name": "user", "at": "ts", "chat": "=general"}
    report = import_tables(quick, path, {**columns, "title": "subject", "meta": "*"})
    assert lines_of(report) == [("no row has the field 'subject'", (0,))]
    assert words(quick, "general") == [("user", "Hi")]
    assert quick.chat("general").history()[0].meta == {}
    with pytest.raises(InvalidInput, match="has no field 'body'"):
        import_tables(quick, path, {**columns, "content": "body"})
    path.write_text("{")
    assert len(import_tables(quick, path, columns).problems) >= 1
