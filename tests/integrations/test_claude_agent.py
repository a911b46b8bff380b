from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import Coroutine, Mapping
from datetime import UTC, datetime
from types import ModuleType
from typing import Any, TypeVar

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast import InvalidInput, Memory, MissingExtra, acting_as
from holdfast.integrations.claude_agent import HoldfastSessionStore
from soak import cases
from stored_texts import erasures_of
from tables import each

T = TypeVar("T")
Entry = dict[str, Any]
KEY = {"project_key": "-home-ada-code", "session_id": "0b2e"}
AGENT = {**KEY, "subpath": "subagents/agent-7"}
CHAT = "claude/-home-ada-code/0b2e"


def done(work: Coroutine[object, object, T]) -> T:
    return asyncio.run(work)


def line(kind: str, uuid: str, content: object, **more: object) -> Entry:
    """Make a line of a transcript as Claude Code writes it."""
    inner = {"role": kind, "content": content}
    return {"type": kind, "uuid": uuid, "timestamp": "2026-01-06T09:15:59.901Z", "message": inner, **more}


TITLE: Entry = {"type": "custom-title", "customTitle": "Alpacas"}
ASKED = line("user", "u1", "Which file has the parser?")
USE = line(
    "assistant", "a1", [{"type": "tool_use", "id": "t1", "name": "Grep", "input": {"pattern": "parse"}}]
)
SNAPSHOT: Entry = {"type": "file-history-snapshot", "messageId": "u1", "snapshot": {}}
RESULT = line("user", "u2", [{"type": "tool_result", "tool_use_id": "t1", "content": "src/reader.py"}])
ANSWER = line("assistant", "a2", [{"type": "text", "text": "The parser is in reader.py."}])
SESSION = [TITLE, ASKED, USE, SNAPSHOT, RESULT, ANSWER]


@pytest.fixture
def store(memory: Memory) -> HoldfastSessionStore:
    return HoldfastSessionStore(memory)


# Transcripts are chats


def test_a_transcript_comes_back_as_it_was_and_reads_as_a_conversation(
    store: HoldfastSessionStore, memory: Memory
) -> None:
    done(store.append(KEY, SESSION))
    assert done(store.load(KEY)) == SESSION
    window = memory.chat(CHAT).window()
    assert [(one.role, one.content) for one in window.messages] == [
        ("user", "Which file has the parser?"),
        ("assistant", ""),
        ("tool", "src/reader.py"),
        ("assistant", "The parser is in reader.py."),
    ]
    assert window.messages[0].at == datetime(2026, 1, 6, 9, 15, 59, 901000, tzinfo=UTC)
    assert sum(one.messages for one in window.omitted) == 2
    assert memory.chats()[0].title == "Which file has the parser?"
    assert memory.verify().ok


def test_recall_finds_what_was_said_and_typed_and_not_what_the_program_wrote(
    store: HoldfastSessionStore, memory: Memory
) -> None:
    marked = line("user", "m1", "Caveat: the parser of the program", isMeta=True)
    condensed = line("user", "m2", "The parser was asked for", isCompactSummary=True)
    refused = line("assistant", "m3", "API Error: no parser answered", isApiErrorMessage=True)
    program = [marked, condensed, refused, {"type": "summary", "summary": "the parser"}]
    typed = {"type": "queued_command", "prompt": "Leave the lexer alone.", "commandMode": "prompt"}
    notice = {"type": "queued_command", "prompt": "The lexer is done.", "commandMode": "task-notification"}
    queued = [
        {"type": "attachment", "uuid": f"q{n}", "attachment": one} for n, one in enumerate((typed, notice))
    ]
    done(store.append(KEY, [*SESSION, *program, *queued]))
    hits = memory.recall("Where is the parser?")
    assert [(hit.chat, hit.text) for hit in hits[:2]] == [
        (CHAT, "The parser is in reader.py."),
        (CHAT, "Which file has the parser?"),
    ]
    assert not {hit.text for hit in hits} & {"Caveat: the parser of the program", "The parser was asked for"}
    assert "API Error" not in str(hits)
    assert memory.recall("lexer", roles=["user"])[0].text == "Leave the lexer alone."
    assert "The lexer is done." not in str(memory.recall("lexer"))
    assert done(store.load(KEY)) == [*SESSION, *program, *queued]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
entries = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["user", "assistant", "system"]) | json_values,
        "message": st.fixed_dictionaries(
            {},
            optional={"role": st.sampled_from(["user", "emperor"]) | json_values, "content": json_values},
        )
        | json_values,
        "timestamp": st.sampled_from(["yesterday", "0001-01-01T00:00:00+14:00"]) | json_values,
        "uuid": st.sampled_from(["\ud800\x00", " ", "u" * 5_000]) | json_values,
        "isMeta": json_values,
        "raw": json_values,
        "meta": json_values,
    },
)


@settings(max_examples=cases(15, 180))
@given(entries)
@example(
    {"type": "user", "message": {"role": "user", "content": "x"}, "timestamp": "0001-01-01T00:00:00+14:00"}
)
@example({"type": "x", "uuid": "\ud800\x00"})
def test_any_json_comes_back_equal(entry: Entry) -> None:
    with Memory(":memory:") as memory:
        store = HoldfastSessionStore(memory)
        done(store.append(KEY, [entry]))
        done(store.append(KEY, [ANSWER]))
        assert done(store.load(KEY)) == [entry, ANSWER]


@each("wrong", ["text", None, {"type": object()}, {"type": "x", "a": (1,)}])
def test_all_or_none_are_stored(wrong: Any) -> None:
    with Memory(":memory:") as memory:
        store = HoldfastSessionStore(memory)
        with pytest.raises(InvalidInput):
            done(store.append(KEY, [ANSWER, wrong]))
        assert done(store.load(KEY)) is None


def test_a_long_transcript_comes_back_whole(store: HoldfastSessionStore) -> None:
    given_ = [{"type": "x", "n": n} for n in range(600)]  # more than are read at once
    done(store.append(KEY, given_))
    assert done(store.load(KEY)) == given_


# The same entry twice


def test_of_entries_with_one_uuid_the_first_stays_and_those_without_are_not_compared(
    store: HoldfastSessionStore,
) -> None:
    other = line("user", "u1", "Something else")
    for batch in ([ASKED, USE, ASKED, other, TITLE, TITLE], [other, USE, RESULT], [other], [TITLE]):
        done(store.append(KEY, batch))
    assert done(store.load(KEY)) == [ASKED, USE, TITLE, TITLE, RESULT, TITLE]


def test_a_transcript_is_the_same_in_another_memory_and_whatever_others_append_to_the_chat(
    store: HoldfastSessionStore, memory: Memory
) -> None:
    done(store.append(KEY, SESSION))
    chat = memory.chat(CHAT)
    chat.append([{"role": role, "content": "Go on. " * 50} for role in ("user", "assistant") * 10])
    seen = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    others = chat.append([{"role": "user", "content": [seen]}, {"role": "user", "content": "a\0b"}])
    assert all(message.raw for message in others)
    assert chat.compact(full=True, budget=500).messages > len(SESSION)
    memory.erase(chat=chat.id, messages=2)
    with Memory(":memory:") as other:
        other.chat(chat.id).append(chat.history())
        copy = done(HoldfastSessionStore(other).load(KEY))
    assert copy == done(store.load(KEY)) == [SESSION[0], *SESSION[2:]]


# Keys

PARTS = ["a", "a/b", "a%2Fb", "%", "%25", "\ud800\n", " ", "..", "x" * 300, "x" * 301, "%" + "0" * 64]


def test_no_two_keys_have_the_same_transcript(memory: Memory) -> None:
    store = HoldfastSessionStore(memory)
    short = [part for part in PARTS if len(part) < 100]
    keys: list[dict[str, str]] = [
        *({"project_key": part, "session_id": "s"} for part in PARTS),
        *({"project_key": "p", "session_id": part} for part in short),
        *({"project_key": "p", "session_id": "a", "subpath": part} for part in short),
    ]
    for n, key in enumerate(keys):
        done(store.append(key, [{"type": "x", "n": n}]))
    assert [done(store.load(key)) for key in keys] == [[{"type": "x", "n": n}] for n in range(len(keys))]
    for part in PARTS:
        listed = [one["session_id"] for one in done(store.list_sessions(part))]
        assert listed == ["s"], part
    assert sorted(one["session_id"] for one in done(store.list_sessions("p"))) == sorted(short)
    assert sorted(done(store.list_subkeys({"project_key": "p", "session_id": "a"}))) == sorted(short)


@each(
    "key",
    [{}, {"project_key": "p"}, {**KEY, "session_id": ""}, {**KEY, "session_id": 7}, {**KEY, "subpath": ""}],
)
def test_a_key_that_names_nothing_is_an_error(key: Mapping[str, object]) -> None:
    with Memory(":memory:") as memory:
        store = HoldfastSessionStore(memory)
        for work in (store.append(key, [TITLE]), store.load(key), store.delete(key)):
            with pytest.raises(InvalidInput, match="key"):
                done(work)


# Lists


def test_a_session_is_listed_with_the_time_of_what_was_said_last(store: HoldfastSessionStore) -> None:
    done(store.append(KEY, [ASKED]))
    assert done(store.list_sessions(KEY["project_key"])) == [{"session_id": "0b2e", "mtime": 1767690959901}]
    assert done(store.list_sessions("other")) == []


# Deletion


def test_a_deleted_session_is_erased_with_those_of_its_subagents(
    store: HoldfastSessionStore, memory: Memory
) -> None:
    next_to_it, another = {**KEY, "session_id": "0b2e2"}, {**KEY, "subpath": "subagents/agent-8"}
    for key in (KEY, AGENT, another):
        done(store.append(key, SESSION))
    done(store.append(next_to_it, [ASKED]))
    for _ in range(2):
        done(store.delete(another))
    assert done(store.load(another)) is None
    assert done(store.list_subkeys(KEY)) == ["subagents/agent-7"]
    assert done(store.load(KEY)) == SESSION
    done(store.delete(KEY))
    assert done(store.load(KEY)) is done(store.load(AGENT)) is None
    assert done(store.load(next_to_it)) == [ASKED]
    assert [one.counts["messages"] for one in erasures_of(memory)] == [6, 6, 6]
    assert memory.recall("reader.py") == []
    assert memory.verify().ok
    done(store.append(KEY, SESSION[:2]))
    assert done(store.load(KEY)) == SESSION[:2]


# Summaries


@pytest.fixture
def sdk(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Stand in for the SDK if it is not installed, with the last title and the first prompt."""
    if importlib.util.find_spec("claude_agent_sdk") is None:
        module = ModuleType("claude_agent_sdk")
        module.fold_session_summary = fold  # type: ignore[attr-defined]  # a module of the test's own
        monkeypatch.setitem(sys.modules, "claude_agent_sdk", module)
    return importlib.import_module("claude_agent_sdk")


def fold(before: Entry | None, key: Entry, new: list[Entry]) -> Entry:
    data = dict(before["data"]) if before else {}
    for entry in new:
        if "customTitle" in entry:
            data["custom_title"] = entry["customTitle"]
        if entry.get("type") == "user" and isinstance(entry["message"]["content"], str):
            data.setdefault("first_prompt", entry["message"]["content"])
    return {"session_id": key["session_id"], "mtime": 0, "data": data}


def summaries(store: HoldfastSessionStore) -> list[Any]:
    return [dict(one) for one in done(store.list_session_summaries(KEY["project_key"]))]


@pytest.mark.usefixtures("sdk")
def test_summaries_say_what_the_transcripts_say(store: HoldfastSessionStore, memory: Memory) -> None:
    assert summaries(store) == []
    done(store.append(KEY, SESSION))
    done(store.append(AGENT, [{**TITLE, "customTitle": "not this one"}]))
    (first,) = summaries(store)
    assert first["session_id"] == "0b2e"
    assert (first["data"]["custom_title"], first["data"]["first_prompt"]) == (
        "Alpacas",
        "Which file has the parser?",
    )
    assert first["mtime"] >= done(store.list_sessions(KEY["project_key"]))[0]["mtime"]

    first["data"]["custom_title"] = "changed by who reads it"
    assert summaries(store)[0]["data"]["custom_title"] == "Alpacas"
    done(HoldfastSessionStore(memory).append(KEY, [{**TITLE, "customTitle": "Llamas"}]))
    assert summaries(store)[0]["data"]["custom_title"] == "Llamas"


@pytest.mark.usefixtures("sdk")
def test_summaries_forget_what_was_erased(store: HoldfastSessionStore, memory: Memory) -> None:
    done(store.append(KEY, SESSION))
    summaries(store)
    memory.erase(chat=CHAT, messages=2)
    assert "first_prompt" not in summaries(store)[0]["data"]
    done(store.delete(KEY))
    assert summaries(store) == []
    done(store.append(KEY, [ASKED]))
    assert "custom_title" not in summaries(store)[0]["data"]


@pytest.mark.usefixtures("sdk")
def test_summaries_of_one_user_are_not_shown_to_another(location: str) -> None:
    with Memory(location) as memory:
        store = HoldfastSessionStore(memory)
        for user, title in (("ada", "hers"), ("bob", "his")):
            with acting_as(user=user):
                done(store.append(KEY, [{**TITLE, "customTitle": title}]))
                assert summaries(store)[0]["data"]["custom_title"] == title


def test_without_the_sdk_only_summaries_fail(
    store: HoldfastSessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "claude_agent_sdk", None)  # so that importing it fails
    done(store.append(KEY, SESSION))
    assert done(store.list_sessions(KEY["project_key"]))[0]["session_id"] == "0b2e"
    with pytest.raises(MissingExtra, match="Run: pip install claude-agent-sdk"):
        summaries(store)
