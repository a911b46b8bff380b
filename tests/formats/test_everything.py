"""An export of everything is restored equal: each table and column, from each database into each."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embedders import meaning
from every_space import fill_every_space, handles, told
from every_table import fill
from holdfast import Chat, HoldfastError, InvalidInput, Learning, Memory, NewerSchema, UnreleasedSchema
from holdfast.store import space_rows
from holdfast.store.schema import NEWEST, tables
from holdfast_cli.formats.everything import export_everything
from holdfast_cli.formats.importing import import_paths
from soak import cases
from stored_texts import erasures_of, text_of
from tables import each


def lines_of(memory: Memory) -> list[str]:
    stream = io.StringIO()
    export_everything(memory, stream)
    return stream.getvalue().splitlines()


def written(memory: Memory, path: Path) -> Path:
    path.write_text("\n".join(lines_of(memory)) + "\n", "ascii")
    return path


def all_rows(memory: Memory) -> Counter[str]:
    """Read every column of every table, but for what is derived or of its place."""
    return Counter(json.dumps(item) for item in space_rows.read(memory._runtime.database, memory.scope.space))


def answers(memory: Memory) -> dict[str, Any]:
    chats = memory.chats(archived=None)
    return {
        "chats": chats,
        "messages": {info.id: memory.chat(info.id).history() for info in chats},
        "branches": {info.id: memory.chat(info.id).branches() for info in chats},
        "trees": {info.id: memory.chat(info.id).tree() for info in chats},
        "windows": {info.id: memory.chat(info.id).window(budget=500) for info in chats},
        "records": memory.records(),
        "changes": memory.changes(),
        "then": memory.at(version=2).records(),
        "profile": text_of(memory.get("profile")),
        "pads": [dict(memory.scratchpad), dict(memory.chat("monday").scratchpad)],
        "jobs": memory.learning.jobs(),
        "erased": erasures_of(memory),
        "snapshot": memory.chat("monday").snapshot(),
        "found": [(hit.id, hit.score) for hit in memory.recall("what does Redis lose?")],
    }


def test_everything_comes_back_equal(memory: Memory, tmp_path: Path) -> None:
    fill(memory)
    expected, before = answers(memory), all_rows(memory)
    path = written(memory, tmp_path / "all.jsonl")
    with Memory(":memory:", tenant="other", user="eve") as copy:
        report = import_paths(copy, path)
        assert (report.problems, report.renumbered) == ((), 0)
        counts = [memory.chat(info.id).stats() for info in expected["chats"]]
        assert report.added == sum(each.messages + each.aside for each in counts)
        assert all_rows(copy) == before
        assert (copy.verify().problems, copy.verify().unproven) == ((), 0)
        found = answers(copy)
        for info in found["chats"]:
            object.__setattr__(info, "user", "ada")
        assert found == expected
        copy.chat("monday").append(role="user", content="It goes on.")
        copy.remember("And so does this", kind="fact")
        assert copy.verify().problems == ()
    again = import_paths(memory, path)
    assert (again.added, again.renumbered, again.problems, dict(again.rows)) == (0, 0, (), {})
    assert all_rows(memory) == before


def test_every_table_is_filled_by_what_is_compared(quick: Memory) -> None:
    fill(quick)
    counted = Counter(table for table, _ in space_rows.read(quick._runtime.database, quick.scope.space))
    others = {"segments", "spend", "uses", "verdicts", "imports", "vectors", "vector_sets", "agenda"}
    others |= {"grants", "moves"}  # of this database only
    assert counted.keys() >= set(tables()) - others


def test_vectors_come_back_or_are_made_again(tmp_path: Path) -> None:
    source, empty, other = (
        Memory(":memory:", user="ada", embed=meaning, learning=Learning(kinds=())) for _ in range(3)
    )
    with source, empty, other:
        source.chat("monday").append(role="user", content="I drink tea.")
        source.remember("User has a dog")
        source.learning.work()
        path = written(source, tmp_path / "all.jsonl")
        import_paths(empty, path)
        assert all_rows(empty) == all_rows(source)
        assert empty.learning.work().noop
        other.chat("sunday").append(role="user", content="The race.")
        other.learning.work()
        assert import_paths(other, path).problems == ()
        assert other.learning.work().calls == 2
        assert len({row for row in all_rows(other) if '"vectors"' in row}) == 3
        for memory in (empty, other):
            assert memory.verify().problems == ()


@each("body", ["no base64", "", 5, None, "AAA="])
def test_a_vector_that_is_none_is_left_out_or_found(tmp_path: Path, body: object) -> None:
    with Memory(":memory:", user="ada") as memory:
        row = {"model": "m", "source": "message", "number": 1, "body": body}
        report = import_paths(memory, put(tmp_path / "all.jsonl", {"table": "vectors", "row": row}))
        assert report.problems or memory.verify().problems


def test_what_a_guard_said_comes_back_to_the_same_message_and_record(tmp_path: Path) -> None:
    with (
        Memory(":memory:", user="ada", guard=lambda text: "kettle" in text) as asked,
        Memory(":memory:", user="eve") as copy,
    ):
        asked.chat("monday").append(role="user", content="Put the kettle on.")
        asked.remember("The kettle is blue", "finding")
        asked.remember("The cup is red", "finding")
        asked.learning.work()
        assert [one.text for one in list(asked.quarantine)] == ["The kettle is blue"]
        path = written(asked, tmp_path / "all.jsonl")
        copy.remember("Lives in Kiel")
        for added in (True, False):
            assert (import_paths(copy, path).rows.get("verdicts", 0) > 0) is added
        assert copy.chat("monday").history()[0].flags == asked.chat("monday").history()[0].flags != ()
        assert [one.text for one in list(copy.quarantine)] == ["The kettle is blue"]
        assert copy.verify().ok


def test_from_sqlite_to_postgresql_and_back(quick: Memory, postgres_url: str, tmp_path: Path) -> None:
    fill(quick)
    with Memory(postgres_url, user="ada") as server, Memory(":memory:", user="ada") as back:
        import_paths(server, written(quick, tmp_path / "there.jsonl"))
        assert server.verify().problems == ()
        import_paths(back, written(server, tmp_path / "back.jsonl"))
        assert sorted(lines_of(back)) == sorted(lines_of(quick))
        assert back.verify().problems == ()


def test_every_kind_of_space_comes_back(tmp_path: Path) -> None:
    with Memory(":memory:") as app, Memory(":memory:") as copy:
        fill_every_space(app)
        left = {name: one for name, one in handles(app).items() if not one.scope.agent}
        for name, one in left.items():
            report = import_paths(handles(copy)[name], written(one, tmp_path / "all.jsonl"))
            assert (report.problems, report.renumbered) == ((), 0)
            # What a user has in projects came with the user.
            assert (report.added == 0) is bool(one.scope.project)
        expected = {name: told(one) for name, one in left.items()}
        assert {name: told(handles(copy)[name]) for name in left} == expected
        assert copy.scoped(user="ada").grants.projects() == ["50% /off", "shop"]
        assert not list(copy.grants)


def test_a_user_is_restored_with_all_projects_or_named_without(quick: Memory, tmp_path: Path) -> None:
    shop = quick.scoped(project="shop")
    for one in (quick, shop):
        one.chat("a").append(role="user", content=f"Words of {one.scope.space}")
        one.remember(f"Known in {one.scope.space}")
    path = written(quick, tmp_path / "all.jsonl")
    with Memory(":memory:", user="eve") as copy:
        copy.scoped(project="shop").remember("Known here before")
        report = import_paths(copy, path)
        # The chats are two, of one id, and the project had records of its own.
        assert (report.sessions, report.added, report.renumbered, report.problems) == (2, 2, 1, ())
        assert [m.content for m in copy.chat("a").history()] == ["Words of /ada"]
        assert [m.content for m in copy.scoped(project="shop").chat("a").history()] == ["Words of /ada/shop"]
        assert len(copy.scoped(project="shop").records()) == 2
        assert copy.verify().ok
    with Memory(":memory:", user="eve", project="blog") as other:
        report = import_paths(other, path)
        assert {one.reason for one in report.problems} == {
            "of the project 'shop': import it without --project and --team"
        }
        assert [m.content for m in other.chat("a").history()] == ["Words of /ada"]
    with Memory(":memory:", user="eve") as last:
        row = {"project": 5, "table": "pads", "row": {}}
        assert import_paths(last, put(tmp_path / "bad.jsonl", row, {**row, "project": "a\0"})).problems


def test_beside_others_versions_are_renumbered_and_that_is_said(memory: Memory, tmp_path: Path) -> None:
    with Memory(":memory:", user="ada") as source:
        fill(source)
        path = written(source, tmp_path / "all.jsonl")
        theirs = answers(source)
    memory.chat("sunday").append([{"role": "user", "content": f"words of Sunday {n}"} for n in range(3)])
    mine = memory.remember("Has a dog", kind="fact")
    memory.chat("sunday").compact(budget=5)
    report = import_paths(memory, path)
    versions = [(c.action, c.id, c.before, c.after) for c in theirs["changes"] if c.version]
    assert (report.renumbered, report.problems) == (len(versions), ())
    found = answers(memory)
    assert [(c.action, c.id, c.before, c.after) for c in found["changes"] if c.version] == [
        *versions,
        ("add", mine.id, None, "Has a dog"),
    ]
    assert found["trees"]["monday"] == theirs["trees"]["monday"]
    for chat in ("sunday", "monday"):
        assert len(found["messages"][chat]) == len(theirs["messages"].get(chat, "123"))
    again = import_paths(memory, path)
    assert (again.added, again.renumbered, again.problems) == (0, 0, ())
    assert memory.verify().problems == ()


def test_a_chat_that_went_on_gets_what_it_lacks(quick: Memory, tmp_path: Path) -> None:
    quick.chat("a").append([{"role": "user", "content": f"word {n}"} for n in range(3)])
    with Memory(":memory:", user="ada") as copy:
        import_paths(copy, written(quick, tmp_path / "one.jsonl"))
        quick.chat("a").append([{"role": "user", "content": f"word {n}"} for n in range(3, 6)])
        report = import_paths(copy, written(quick, tmp_path / "two.jsonl"))
        assert (report.added, report.present, report.problems) == (3, 3, ())
        assert [m.content for m in copy.chat("a").history()] == [f"word {n}" for n in range(6)]
        assert copy.verify().problems == ()


def test_a_chat_that_is_another_one_here_is_left_alone_and_named(quick: Memory, tmp_path: Path) -> None:
    quick.chat("a").append(role="user", content="theirs")
    quick.chat("a").remember("Learned in their chat")
    with Memory(":memory:", user="ada") as copy:
        copy.chat("a").append(role="user", content="mine")
        report = import_paths(copy, written(quick, tmp_path / "all.jsonl"))
        assert "chat 'a' is another one here" in {one.reason for one in report.problems}
        assert [m.content for m in copy.chat("a").history()] == ["mine"]
        (record,) = copy.records()
        assert (record.text, record.chat, record.messages) == ("Learned in their chat", "", None)
        assert copy.verify().problems == ()


def test_what_was_erased_here_does_not_come_back(quick: Memory, tmp_path: Path) -> None:
    quick.chat("a").append([{"role": "user", "content": f"word {n}"} for n in range(3)])
    path = written(quick, tmp_path / "all.jsonl")
    quick.erase(chat="a", messages=2)
    report = import_paths(quick, path)
    assert [one.reason for one in report.problems] == ["it was erased here, in chat 'a'"]
    assert [m.content for m in quick.chat("a").history()] == ["word 0", "word 2"]
    assert quick.verify().problems == ()


STEPS_TAKEN: dict[str, Callable[[Memory, Chat, int], object]] = {
    "say": lambda memory, chat, n: chat.append(
        [{"role": "user", "content": f"We moved table {n} to Kiel, {k}."} for k in range(4)]
    ),
    "fact": lambda memory, chat, n: memory.remember(f"The number of {chr(97 + n)} is {n * 37}", kind="fact"),
    "replace": lambda memory, chat, n: memory.replace(memory.records()[-1].id, f"Another text of {n * 91}"),
    "retract": lambda memory, chat, n: memory.retract(memory.records()[-1].id),
    "pad": lambda memory, chat, n: chat.scratchpad.update({f"n{n}": "x"}),
    "compact": lambda memory, chat, n: chat.compact(budget=40),
    "erase": lambda memory, chat, n: memory.erase(chat=chat.id, messages=chat.history()[0].seq),
    "prompt": lambda memory, chat, n: chat.prompt(budget=500),
    "undo": lambda memory, chat, n: memory.undo(),
    "end": lambda memory, chat, n: chat.end(),
}
STEPS = st.lists(st.sampled_from(sorted(STEPS_TAKEN)), min_size=1, max_size=14)


@settings(max_examples=cases(10, 75), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, beside=st.booleans())
def test_any_history_comes_back(steps: list[str], beside: bool, tmp_path: Path) -> None:
    with Memory(":memory:", user="ada") as memory, Memory(":memory:", user="ada") as copy:
        for n, step in enumerate(steps):
            # There may be no record, no message or no change to do it to.
            with suppress(InvalidInput, IndexError):
                STEPS_TAKEN[step](memory, memory.chat(f"chat{n % 2}"), n)
        path = written(memory, tmp_path / "all.jsonl")
        if beside:
            copy.chat("own").append(role="user", content="of its own")
            copy.remember("Has a dog", kind="fact")
        report = import_paths(copy, path)
        assert report.problems == ()
        assert copy.verify().problems == ()
        assert [r.text for r in copy.records()][beside:] == [r.text for r in memory.records()]
        if not beside:
            assert all_rows(copy) == all_rows(memory)


# Files that nobody wrote


def put(path: Path, *values: object) -> Path:
    head = {"holdfast": "everything", "schema": NEWEST}
    path.write_text("".join(json.dumps(value) + "\n" for value in (head, *values)))
    return path


PAD = {"chat": "", "run": "", "name": "x", "value": "x", "at": 1}
BAD: list[tuple[object, str]] = [
    ({"table": "segments", "row": {}}, "no table 'segments'"),
    ({"table": "sqlite_master", "row": {}}, "no table 'sqlite_master'"),
    ({"table": "pads", "row": {"name); DROP TABLE pads; --": "x"}}, "has no column 'name); DROP"),
    ({"table": "pads", "row": {"space": "/eve"}}, "has no column 'space'"),
    ({"table": "pads", "row": PAD | {"name": 7}}, "'name' of the table"),
    ({"table": "pads", "row": PAD | {"at": 1 << 70}}, "'at' of the table"),
    ({"table": "pads", "row": {name: PAD[name] for name in PAD if name != "at"}}, "'at' of the table"),
    ({"table": "pads", "row": [1]}, "neither a table nor a row"),
    ({"x": 1}, "neither a table nor a row"),
]


def test_lines_that_make_no_row_are_left_out(quick: Memory, tmp_path: Path) -> None:
    lines = [*(value for value, _ in BAD), {"table": "pads", "row": PAD}]
    problems = import_paths(quick, put(tmp_path / "all.jsonl", *lines)).problems
    told = {line - 2: one.reason for one in problems for line in one.lines}
    assert [reason in told[number] for number, (_, reason) in enumerate(BAD)] == [True] * len(BAD)
    assert dict(quick.scratchpad) == {"x": "x"}


@each(("number", "error"), [(99, NewerSchema), (21, UnreleasedSchema)])
def test_what_another_schema_wrote_is_refused(
    quick: Memory, tmp_path: Path, number: int, error: type[HoldfastError]
) -> None:
    (tmp_path / "all.jsonl").write_text(json.dumps({"holdfast": "everything", "schema": number}) + "\n")
    with pytest.raises(error, match=str(number)):
        import_paths(quick, tmp_path / "all.jsonl")


def test_everything_is_of_all_agents(quick: Memory, tmp_path: Path) -> None:
    coach = quick.scoped(agent="coach")
    with pytest.raises(InvalidInput, match="all agents"):
        export_everything(coach, io.StringIO())
    with pytest.raises(InvalidInput, match="all agents"):
        import_paths(coach, written(quick, tmp_path / "all.jsonl"))
