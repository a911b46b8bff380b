"""Whatever characters a message has in whatever field: nothing that is done with it later stops at them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from holdfast import Conflict, InvalidInput, Memory, Message, ToolCall
from holdfast.prompt.window import Compaction, Lossless
from holdfast_cli.formats.export import export_chats
from holdfast_cli.formats.importing import import_paths
from soak import cases

HALF = "a\ud83d"
# Any code point: halves of pairs, controls, what nobody has assigned; and those that have made trouble, more
# often.
CHARACTERS = (
    st.characters()
    | st.characters(categories=["Cs"])
    | st.sampled_from("\x00\u200b\ufeff\u202e\u0301 \n{\"'<&")
)
TEXTS = st.text(CHARACTERS, max_size=30)
SOME = st.text(CHARACTERS, min_size=1, max_size=30)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(TEXTS, JSON, max_size=3)
CALLS = st.builds(ToolCall, SOME, SOME, OBJECTS | TEXTS)
TIMES = st.none() | st.datetimes(timezones=st.just(UTC))
FIELDS = {"id": TEXTS, "name": st.none() | TEXTS, "at": TIMES, "raw": st.none() | OBJECTS, "meta": OBJECTS}
MESSAGES = st.one_of(
    st.fixed_dictionaries({"role": st.sampled_from(["system", "developer", "user"]), "content": SOME,
            **FIELDS}),
    st.fixed_dictionaries(
        {"role": st.just("assistant"), "content": TEXTS, "calls": st.lists(CALLS, max_size=2).map(tuple),
            **FIELDS}
    ),
    st.fixed_dictionaries({"role": st.just("tool"), "content": TEXTS, "call_id": st.none() | TEXTS,
            **FIELDS}),
)  # fmt: skip
PAYLOADS = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool"]), "content": st.none() | SOME},
    optional={
        "name": TEXTS, "id": TEXTS, "tool_call_id": TEXTS, "meta": OBJECTS, "note": JSON,
        "tool_calls": st.lists(
            st.fixed_dictionaries(
                {"id": TEXTS,
                    "function": st.fixed_dictionaries({"name": SOME,
                            "arguments": OBJECTS.map(json.dumps) | TEXTS | OBJECTS})}
            ),
            max_size=2,
        ),
    },
)  # fmt: skip
HALVES: list[dict[str, object]] = [
    {"role": "assistant", "content": "", "calls": (ToolCall("c1", "read", {"path": HALF, HALF: [HALF]}),)},
    {"role": "assistant", "content": "", "calls": (ToolCall("c2", "read", HALF),)},
]


def stored(memory: Memory, messages: list[dict[str, object]]) -> str:
    """Append what can be a message, each alone; what cannot is refused as such, and with nothing else."""
    chat = memory.chat(uuid4().hex)
    for fields in messages:
        with suppress(InvalidInput, Conflict):
            chat.append(Message(**fields) if "at" in fields or "calls" in fields else fields)  # type: ignore[arg-type]  # drawn
    for n in range(6):
        chat.append(role="user", content=f"We moved the {n}th meeting to Monday. " * 20)
    return chat.id


def taken_through_everything(memory: Memory, identity: str, copy: Memory, file: Path) -> None:
    chat = memory.chat(identity)
    messages = chat.history()
    memory.recall("which path did the meeting read?")
    for budget in (300, 8_000):
        chat.window(budget)
        prompt = chat.prompt(budget, query="meeting")
        json.dumps(prompt.messages).encode()
        str(prompt.messages).encode()
    while chat.compact(
        full=True, budget=400, policy=Lossless(compaction=Compaction(threshold=0.1, target=0.1))
    ).summaries:
        pass
    assert all(chat.expand(summary.id, 100_000) for summary in chat.tree())
    chat.end()
    assert not memory.learning.work().failed
    with file.open("w") as stream:
        export_chats(memory, stream, [identity])
    report = import_paths(copy, file)
    assert (report.problems, report.added) == ((), len(messages))
    assert [json.dumps(one.raw) for one in copy.chat(identity).history()] == [
        json.dumps(one.raw) for one in messages
    ]
    again = io.StringIO()
    export_chats(copy, again, [identity])
    assert untitled(again.getvalue()) == untitled(file.read_text())


def untitled(exported: str) -> list[dict[str, object]]:
    """Read an export without the titles, of which an import makes one line without control characters."""
    return [{**json.loads(line, parse_constant=str), "title": ""} for line in exported.splitlines()]


@pytest.fixture
def copy() -> Iterator[Memory]:
    with Memory(":memory:", user="ada") as opened:
        yield opened


@settings(
    max_examples=cases(4, 400),
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@example(HALVES)
@given(st.lists(MESSAGES | PAYLOADS, min_size=1, max_size=4))
def test_any_character_in_any_field_passes_through_everything(
    memory: Memory, copy: Memory, tmp_path: Path, messages: list[dict[str, object]]
) -> None:
    taken_through_everything(memory, stored(memory, messages), copy, tmp_path / "export.jsonl")


def test_restored_rows_with_half_a_character_are_compacted(location: str, tmp_path: Path) -> None:
    with Memory(location, user="ada") as memory:
        chat = memory.chat("monday")
        given = {"path": HALF}
        chat.append(role="assistant", calls=[ToolCall("c1", "read", {"path": "whole"})], id="m1")
        for n in range(6):
            chat.append(role="user", content=f"We moved the {n}th meeting to Monday. " * 20)
        calls = json.dumps([["c1", "read", given]])
        with memory._runtime.database.writing() as tx:
            tx.all(
                "UPDATE messages SET calls = :calls WHERE space = :space AND chat = 'monday' AND seq = 1",
                calls=calls,
                space=memory.scope.space,
            )
        first = chat.history(1, after=0)[0]
        assert first.calls == (ToolCall("c1", "read", {"path": "a\ufffd"}),)
        assert first.raw == {"role": "assistant", "content": "",
            "calls": [{"id": "c1", "name": "read", "arguments": given}]}  # fmt: skip
        again = chat.append(role="assistant", calls=[ToolCall("c1", "read", given)], id="m1")
        assert again.seq == 1
    with Memory(location, user="ada") as memory, Memory(":memory:", user="ada") as copy:
        if location != ":memory:":
            taken_through_everything(memory, "monday", copy, tmp_path / "export.jsonl")
