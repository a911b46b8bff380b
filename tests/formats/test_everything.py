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
from handles import memory_of
from holdfast import Chat, HoldfastError, InvalidInput, Learning, Memory, NewerSchema, UnreleasedSchema
from holdfast.store import space_rows, vectors
from holdfast.store.schema import NEWEST, tables
from holdfast.types import SOURCES
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
    expected = answers(memory)
    path = written(memory, tmp_path / "all.jsonl")
    with Memory(":memory:", tenant="other", user="eve") as copy:
        report = import_paths(copy, path)
        assert (report.problems, report.renumbered) == ((), 0)
        assert report.added == sum(len(messages) for messages in expected["messages"].values())
        assert all_rows(copy) == all_rows(memory)
        assert copy.verify().problems == ()
        assert copy.verify().unproven == 0
        found = answers(copy)
        for info in found["chats"]:
            object.__setattr__(info, "user", "ada")
        assert found == expected
        copy.chat("monday").append(role="user", content="It goes on.")
        copy.remember("And so does this", kind="fact")
        assert copy.verify().problems == ()


def test_every_table_is_filled_by_what_is_compared(quick: Memory) -> None:
    fill(quick)
    counted = Counter(table for table, _ in space_rows.read(quick._runtime.database, quick.scope.space))
    others = {"segments", "spend", "uses", "verdicts", "imports", "vectors", "vector_sets"}
    others |= {"grants", "moves"}  # of this database only
    assert counted.keys() >= set(tables()) - others


def test_vectors_come_back_or_are_made_again(tmp_path: Path) -> None:
    learning = Learning(kinds=())
    with (
        Memory(":memory:", user="ada", embed=meaning, learning=learning) as source,
        Memory(":memory:", user="ada", embed=meaning, learning=learning) as empty,
        Memory(":memory:", user="ada", embed=meaning, learning=learning) as other,
    ):
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
        assert len(set(vectors_of(other))) == 3
        for memory in (empty, other):
            assert memory.verify().problems == ()


@pytest.mark.parametrize("body", ["no base64", "", 5, None, "AAA="])
def test_a_vector_that_is_none_is_left_out_or_found(tmp_path: Path, body: object) -> None:
    with Memory(":memory:", user="ada") as memory:
        row = {"model": "m", "source": "message", "number": 1, "body": body}
        report = import_paths(memory, put(tmp_path / "all.jsonl", {"table": "vectors", "row": row}))
        assert report.problems or memory.verify().problems


def vectors_of(memory: Memory) -> list[bytes]:
    database, space = memory._runtime.database, memory.scope.space
    return [body for source in SOURCES for _, body in vectors.read(database, space, "meaning", source, 0)]


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


def test_every_kind_of_space_comes_back(memory: Memory, tmp_path: Path) -> None:
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


def test_the_same_again_adds_nothing(memory: Memory, tmp_path: Path) -> None:
    fill(memory)
    before = all_rows(memory)
    report = import_paths(memory, written(memory, tmp_path / "all.jsonl"))
    assert (report.added, report.renumbered, report.problems, dict(report.rows)) == (0, 0, (), {})
    assert all_rows(memory) == before


def test_beside_others_versions_are_renumbered_and_that_is_said(memory: Memory, tmp_path: Path) -> None:
    with Memory(":memory:", user="ada") as source:
        fill(source)
        path = written(source, tmp_path / "all.jsonl")
        theirs = answers(source)
    memory.chat("sunday").append([{"role": "user", "content": f"words of Sunday {n}"} for n in range(3)])
    mine = memory.remember("Has a dog", kind="fact")
    memory.replace(mine.id, "Has two dogs")
    memory.chat("sunday").compact(budget=5)
    report = import_paths(memory, path)
    versions = [(c.action, c.id, c.before, c.after) for c in theirs["changes"] if c.version]
    assert report.renumbered == len(versions)
    assert report.problems == ()
    assert memory.verify().problems == ()
    found = answers(memory)
    assert [(c.action, c.id, c.before, c.after) for c in found["changes"] if c.version] == [
        *versions,
        ("replace", mine.id, "Has a dog", "Has two dogs"),
        ("add", mine.id, None, "Has a dog"),
    ]
    assert found["trees"]["monday"] == theirs["trees"]["monday"]
    assert [m.content for m in found["messages"]["monday"]] == [
        m.content for m in theirs["messages"]["monday"]
    ]
    assert memory.chat("sunday").stats().messages == 3
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


STEPS = st.lists(
    st.sampled_from(
        ["say", "fact", "replace", "retract", "pad", "compact", "erase", "prompt", "undo", "end"]
    ),
    min_size=1,
    max_size=14,
)


def take(step: str, n: int, memory: Memory) -> None:
    """Do one thing to a memory, if there is anything to do it to."""
    known, chat = memory.records(), memory.chat(f"chat{n % 2}")
    said = chat.stats().messages
    if step == "say":
        chat.append([{"role": "user", "content": f"We moved table {n} to Kiel, {k}."} for k in range(4)])
    elif step == "fact":
        memory.remember(f"The number of {'abcdefghijklmn'[n]} is {n * 37}", kind="fact")
    elif step == "pad":
        chat.scratchpad[f"n{n}"] = "x"
    elif step == "undo":
        with suppress(InvalidInput):  # there is nothing left to undo
            memory.undo()
    elif step in OF_A_RECORD and known:
        OF_A_RECORD[step](memory, known[-1].id)
    elif step in OF_A_CHAT and said:
        OF_A_CHAT[step](chat)


OF_A_RECORD: dict[str, Callable[[Memory, str], object]] = {
    "replace": lambda memory, record: memory.replace(record, f"Another text of {memory.version() * 91}"),
    "retract": lambda memory, record: memory.retract(record),
}
OF_A_CHAT: dict[str, Callable[[Chat], object]] = {
    "compact": lambda chat: chat.compact(budget=40),
    "prompt": lambda chat: chat.prompt(budget=500),
    "end": lambda chat: chat.end(),
    "erase": lambda chat: memory_of(chat).erase(chat=chat.id, messages=chat.history()[0].seq),
}


@settings(max_examples=cases(10, 75), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, beside=st.booleans())
def test_any_history_comes_back(steps: list[str], beside: bool, tmp_path: Path) -> None:
    with Memory(":memory:", user="ada") as memory, Memory(":memory:", user="ada") as copy:
        for n, step in enumerate(steps):
            take(step, n, memory)
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


BAD: list[tuple[object, str]] = [
    ({"table": "segments", "row": {}}, "no table 'segments'"),
    ({"table": "sqlite_master", "row": {}}, "no table 'sqlite_master'"),
    ({"table": "pads", "row": {"name); DROP TABLE pads; --": "x"}}, "has no column 'name); DROP"),
    ({"table": "pads", "row": {"space": "/eve"}}, "has no column 'space'"),
    (
        {"table": "pads", "row": {"chat": "", "run": "", "name": 7, "value": "x", "at": 1}},
        "'name' of the table",
    ),
    (
        {"table": "pads", "row": {"chat": "", "run": "", "name": "x", "value": "x", "at": 1 << 70}},
        "'at' of the table",
    ),
    ({"table": "pads", "row": {"chat": "", "run": "", "name": "x", "value": "x"}}, "'at' of the table"),
    ({"table": "pads", "row": [1]}, "neither a table nor a row"),
    ({"x": 1}, "neither a table nor a row"),
]


@pytest.mark.parametrize(("value", "reason"), BAD)
def test_a_line_that_makes_no_row_is_left_out(
    quick: Memory, tmp_path: Path, value: object, reason: str
) -> None:
    good = {"table": "pads", "row": {"chat": "", "run": "", "name": "good", "value": "x", "at": 1}}
    report = import_paths(quick, put(tmp_path / "all.jsonl", value, good))
    assert [reason in one.reason for one in report.problems] == [True]
    assert dict(quick.scratchpad) == {"good": "x"}


@each(("number", "error"), [(99, NewerSchema), (21, UnreleasedSchema)])
def test_what_another_schema_wrote_is_refused(
    quick: Memory, tmp_path: Path, number: int, error: type[HoldfastError]
) -> None:
    (tmp_path / "all.jsonl").write_text(json.dumps({"holdfast": "everything", "schema": number}) + "\n")
    with pytest.raises(error, match=str(number)):
        import_paths(quick, tmp_path / "all.jsonl")


def test_one_in_a_folder_is_not_believed(quick: Memory, tmp_path: Path) -> None:
    put(
        tmp_path / "all.jsonl",
        {"table": "pads", "row": {"chat": "", "run": "", "name": "x", "value": "x", "at": 1}},
    )
    report = import_paths(quick, tmp_path)
    assert dict(quick.scratchpad) == {}
    assert [one.count for one in report.skipped] == [1]


def test_everything_is_of_all_agents(quick: Memory, tmp_path: Path) -> None:
    coach = quick.scoped(agent="coach")
    with pytest.raises(InvalidInput, match="all agents"):
        export_everything(coach, io.StringIO())
    with pytest.raises(InvalidInput, match="all agents"):
        import_paths(coach, written(quick, tmp_path / "all.jsonl"))
