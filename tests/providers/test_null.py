"""The memory that does nothing: the names and parameters of the real one, and nothing behind them."""

from __future__ import annotations

import asyncio
import doctest
import inspect
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast import (
    Chat,
    ChatStats,
    CompactionResult,
    Erasure,
    Extraction,
    Grant,
    InvalidInput,
    Job,
    Memory,
    Message,
    Prompt,
    Record,
    Run,
    Scratchpad,
    Usage,
    Verification,
    View,
    Window,
    WorkResult,
    acting_as,
)
from holdfast.aio import AsyncChat, AsyncMemory, AsyncRun, AsyncScratchpad
from holdfast.contract import CAPABILITIES, capabilities
from holdfast.learning.ranking import Ranking
from holdfast.learning.results import Relearning
from holdfast.learning.service import Learner
from holdfast.prompt.window import LastN, TokenBudget
from holdfast.providers import null
from holdfast.providers.null import (
    NullChat,
    NullGrants,
    NullLearner,
    NullMemory,
    NullQuarantine,
    NullRun,
    NullScratchpad,
    NullView,
)
from holdfast.providers.tracing import traced
from holdfast.records.grants import Grants
from holdfast.records.quarantine import Quarantine
from holdfast.testing.minimal import MinimalChat, MinimalProvider
from holdfast.tools.presets.observations import recall_fil, remember_fil
from programs import run
from tables import each

PAIRS: list[tuple[type, type]] = [
    (Memory, NullMemory),
    (Chat, NullChat),
    (View, NullView),
    (Run, NullRun),
    (Learner, NullLearner),
    (Quarantine, NullQuarantine),
    (Grants, NullGrants),
    (Scratchpad, NullScratchpad),
]


def public(kind: type) -> list[str]:
    return [name for name in dir(kind) if not name.startswith("_")]


def twins() -> list[tuple[type, type, str]]:
    return [(real, null, name) for real, null in PAIRS for name in public(real)]


# The two are in step


@each(("real", "null", "name"), twins())
def test_every_public_name_is_there_with_the_same_parameters(real: type, null: type, name: str) -> None:
    one, other = inspect.getattr_static(real, name), inspect.getattr_static(null, name)
    assert isinstance(one, property) == isinstance(other, property)
    assert other.__doc__
    if not isinstance(one, property):
        assert inspect.signature(other) == inspect.signature(one)


HANDLES: Mapping[type, Callable[[Memory], object]] = {
    Memory: lambda memory: memory,
    Chat: lambda memory: memory.chat("a"),
    View: lambda memory: memory.at(0),
    Run: lambda memory: memory.chat("a").run("r"),
    Learner: lambda memory: memory.learning,
    Quarantine: lambda memory: memory.quarantine,
    Grants: lambda memory: memory.grants,
    Scratchpad: lambda memory: memory.scratchpad,
}
GIVEN: Mapping[str, object] = {"version": 1, "helpful": True, "llm": str, "observer": print}


@each(("real", "null", "name"), twins())
def test_what_the_real_one_takes_is_taken_in_every_way(real: type, null: type, name: str) -> None:
    if isinstance(inspect.getattr_static(null, name), property):
        return
    call = getattr(HANDLES[real](NullMemory(user="ada")), name)
    takes = inspect.signature(call).parameters.values()
    needed = [one for one in takes if one.default is one.empty and one.kind is not one.VAR_KEYWORD]
    named = {one.name: GIVEN.get(one.name, "user") for one in needed}
    by_place = [named[one.name] for one in needed if one.kind is one.POSITIONAL_OR_KEYWORD]
    others = {one.name: named[one.name] for one in needed if one.kind is one.KEYWORD_ONLY}
    with suppress(InvalidInput, KeyError):
        call(**named)
    with suppress(InvalidInput, KeyError):
        call(*by_place, **others)
    for missing in named:
        with pytest.raises(TypeError):
            call(**{key: value for key, value in named.items() if key != missing})
    if not any(one.kind is one.VAR_KEYWORD for one in takes):
        with pytest.raises(TypeError):
            call(**named, nothing_of_this_name=1)


def test_the_smallest_provider_takes_what_it_takes_as_a_memory_does() -> None:
    for small, real in ((MinimalProvider, Memory), (MinimalChat, Chat)):
        for name in (name for name in public(small) if callable(getattr(small, name))):
            one, other = (inspect.signature(getattr(kind, name)).parameters for kind in (small, real))
            assert {key: own.kind for key, own in one.items()} == {key: other[key].kind for key in one}


@each(("real", "null"), PAIRS)
def test_it_has_no_names_of_its_own(real: type, null: type) -> None:
    assert public(null) == public(real)


def test_it_has_every_capability() -> None:
    assert capabilities(NullMemory()) == set(CAPABILITIES)


def test_it_opens_with_what_a_memory_opens_with(tmp_path: Path) -> None:
    given = inspect.signature(Memory).parameters
    assert given.keys() >= {name for name in inspect.signature(NullMemory).parameters if name != "_"}
    location = tmp_path / "agent.db"
    with NullMemory(location, tenant="acme", user="ada", agent="coach", durability="normal") as memory:
        memory.chat("a").append(role="user", content="Berlin")
        memory.remember("Berlin")
        assert (memory.scope.tenant, memory.scope.user, memory.scope.agent) == ("acme", "ada", "coach")
    assert list(tmp_path.iterdir()) == []


# What each method gives, whatever was done before

LIST, NONE = list, type(None)
MEMORY: dict[str, tuple[Callable[[Memory], object], type]] = {
    "at": (lambda memory: memory.at(3), View),
    "changes": (lambda memory: memory.changes(), LIST),
    "chat": (lambda memory: memory.chat("a"), Chat),
    "chats": (lambda memory: memory.chats(archived=None), LIST),
    "close": (lambda memory: memory.close(), NONE),
    "erase": (lambda memory: memory.erase(chat="a"), Erasure),
    "feedback": (lambda memory: memory.feedback("a#1", helpful=True, query="Berlin?"), Record),
    "get": (lambda memory: memory.get("profile"), NONE),
    "on": (lambda memory: memory.on("learned", print)(), NONE),
    "recall": (lambda memory: memory.recall("Berlin", limit=3), LIST),
    "records": (lambda memory: memory.records(kind="fact"), LIST),
    "remember": (lambda memory: memory.remember("Runs in Berlin", tags=["sport"]), Record),
    "replace": (lambda memory: memory.replace("Berlin", "Runs in Vienna"), Record),
    "retract": (lambda memory: memory.retract("Berlin", why="moved"), Record),
    "retract_all": (lambda memory: memory.retract_all(kind="fact"), LIST),
    "rollback": (lambda memory: memory.rollback("profile", 1), LIST),
    "scoped": (lambda memory: memory.scoped(user="bob"), Memory),
    "undo": (lambda memory: memory.undo(), LIST),
    "verify": (lambda memory: memory.verify(), Verification),
    "version": (lambda memory: memory.version(), int),
}
LEARNING: dict[str, tuple[Callable[[Learner], object], type]] = {
    "consolidate": (lambda learning: learning.consolidate(llm=str), WorkResult),
    "episodes": (lambda learning: learning.episodes("Berlin", limit=3), Ranking),
    "extract": (lambda learning: learning.extract("We decided to run in Berlin."), Extraction),
    "jobs": (lambda learning: learning.jobs(), LIST),
    "reflect": (lambda learning: learning.reflect(llm=str), WorkResult),
    "relearn": (lambda learning: learning.relearn(llm=str), Relearning),
    "retry_job": (lambda learning: learning.retry_job("job_1"), Job),
    "embedding": (lambda learning: learning.embedding(), list),
    "usage": (lambda learning: learning.usage(), Usage),
    "work": (lambda learning: learning.work(llm=str), WorkResult),
}
QUARANTINE: dict[str, tuple[Callable[[Quarantine], object], type]] = {
    "discard": (lambda quarantine: quarantine.discard("rec_1"), Record),
    "release": (lambda quarantine: quarantine.release("rec_1"), Record),
    "release_all": (lambda quarantine: quarantine.release_all(), list),
}
GRANTS: dict[str, tuple[Callable[[Grants], object], type]] = {
    "add": (lambda grants: grants.add("user", to="user:bob"), Grant),
    "revoke": (lambda grants: grants.revoke("user", to="user:bob"), bool),
    "move": (lambda grants: grants.move("rec_1", "tenant"), Record),
    "copy": (lambda grants: grants.copy("rec_1", "tenant"), Record),
    "projects": (lambda grants: grants.projects(), list),
    "users": (lambda grants: grants.users(), list),
}
CHAT: dict[str, tuple[Callable[[Chat], object], type]] = {
    "refresh": (lambda chat: chat.refresh(), int),
    "append": (lambda chat: chat.append(role="user", content="Berlin"), Message),
    "archive": (lambda chat: chat.archive(), NONE),
    "compact": (lambda chat: chat.compact(full=True, llm=str), CompactionResult),
    "needs_compaction": (lambda chat: chat.needs_compaction(100), bool),
    "end": (lambda chat: chat.end(), LIST),
    "extract": (lambda chat: chat.extract(), Extraction),
    "history": (lambda chat: chat.history(3), LIST),
    "notes": (lambda chat: chat.notes("plan"), LIST),
    "prompt": (lambda chat: chat.prompt(100, "Berlin?", limit=3), Prompt),
    "receipts": (lambda chat: chat.receipts(3), LIST),
    "remember": (lambda chat: chat.remember("Runs in Berlin", messages=1), Record),
    "rename": (lambda chat: chat.rename("Running"), NONE),
    "review": (lambda chat: chat.review(), str),
    "run": (lambda chat: chat.run("r"), Run),
    "search": (lambda chat: chat.search("Berlin"), LIST),
    "snapshot": (lambda chat: chat.snapshot(), NONE),
    "stats": (lambda chat: chat.stats(), ChatStats),
    "tree": (lambda chat: chat.tree(), LIST),
    "window": (lambda chat: chat.window(100, tail=3), Window),
}
RUN: dict[str, tuple[Callable[[Run[Any]], object], type]] = {
    "end": (lambda run: run.end(), NONE),
    "notes": (lambda run: run.notes(), LIST),
    "prompt": (lambda run: run.prompt(100, system="You are a coach."), Prompt),
    "remember": (lambda run: run.remember("Step two", priority=9), Record),
    "replace": (lambda run: run.replace("two", "Step three"), Record),
    "retract": (lambda run: run.retract("three"), Record),
}
RAISES = {"describe", "expand", "explain", "backup"}  # there is nothing to be named, and nothing to copy
MADE_OF_OTHERS = {"tools"}


@each(
    ("calls", "kind"),
    [
        (MEMORY, Memory),
        (CHAT, Chat),
        (RUN, Run),
        (LEARNING, Learner),
        (QUARANTINE, Quarantine),
        (GRANTS, Grants),
    ],
)
def test_every_method_is_tested_here(calls: Mapping[str, object], kind: type) -> None:
    methods = {name for name in public(kind) if callable(getattr(kind, name))}
    assert methods - calls.keys() <= RAISES | MADE_OF_OTHERS


def test_there_is_nothing_to_copy(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="nothing to copy"):
        NullMemory().backup(tmp_path / "copy.db")
    assert list(tmp_path.iterdir()) == []


def test_there_is_nothing_to_explain() -> None:
    with pytest.raises(InvalidInput, match="no such document"):
        NullMemory().explain("berlin", "monday#1")
    with pytest.raises(InvalidInput, match="no such document"):
        NullMemory().at(0).explain("berlin", "monday#1")


@each("name", MEMORY)
def test_a_memory_gives_what_an_empty_one_would(name: str) -> None:
    call, kind = MEMORY[name]
    given = call(NullMemory(user="ada"))
    assert isinstance(given, kind)
    if isinstance(given, list | str | int):
        assert not given


@each("name", LEARNING)
def test_learning_gives_what_that_of_an_empty_one_would(name: str) -> None:
    call, kind = LEARNING[name]
    given = call(NullMemory(user="ada").learning)
    assert isinstance(given, kind)
    if isinstance(given, list):
        assert not given


@pytest.mark.parametrize("name", QUARANTINE)
def test_a_quarantine_gives_what_an_empty_one_would(name: str) -> None:
    call, kind = QUARANTINE[name]
    assert isinstance(call(NullMemory(user="ada").quarantine), kind)


@each("name", GRANTS)
def test_grants_give_what_none_would(name: str) -> None:
    call, kind = GRANTS[name]
    assert isinstance(call(NullMemory(user="ada").grants), kind)
    assert list(NullMemory(user="ada").grants) == []


def test_nothing_is_in_quarantine() -> None:
    assert list(NullMemory(user="ada").quarantine) == []


@each("name", CHAT)
def test_a_chat_gives_what_an_empty_one_would(name: str) -> None:
    call, kind = CHAT[name]
    given = call(NullMemory().chat("a"))
    assert isinstance(given, kind)
    if isinstance(given, list | str) or name in ("refresh", "needs_compaction"):
        assert not given


@each("name", RUN)
def test_a_run_gives_what_an_empty_one_would(name: str) -> None:
    call, kind = RUN[name]
    with NullMemory().chat("a").run() as begun:
        assert isinstance(call(begun), kind)
        assert begun.notes() == []


def test_what_is_empty_is_as_in_an_empty_memory() -> None:
    def used(memory: Memory) -> list[object]:
        chat = memory.chat("a")
        return [
            chat.stats(),
            chat.window(100),
            chat.window(policy=LastN(3)),
            chat.window(policy=TokenBudget(50)),
            chat.prompt(500, "Berlin?", system="You are a coach."),
            chat.needs_compaction(),
            recall_fil(memory, "Berlin"),
            memory.learning.usage(),
        ]

    with Memory(":memory:", user="ada") as real, NullMemory(user="ada") as null:
        assert used(null) == used(real)


def test_a_prompt_is_the_system_text_and_nothing_else() -> None:
    memory = NullMemory()
    memory.remember("A runner.", "profile")
    chat = memory.chat("a")
    chat.append(role="user", content="Hello.")
    prompt = chat.prompt(1_000, "Hello?", system="You are a coach.")
    assert (prompt.system, prompt.messages, prompt.hits) == ("You are a coach.", [], ())
    assert prompt.tokens["free"] == 1_000 - prompt.tokens["system"]


def test_the_example_is_true() -> None:
    assert doctest.testmod(null) == (0, 3)


# Messages and records


def test_messages_come_back_as_if_stored() -> None:
    chat = NullMemory().chat("a")
    asked, answered = chat.append(
        [{"role": "user", "content": "Which race?"}, Message("assistant", "Berlin.", id="m2")]
    )
    assert [asked.seq, answered.seq] == [1, 2]
    assert (asked.content, answered.content, answered.id) == ("Which race?", "Berlin.", "m2")
    assert asked.tokens > 0
    assert asked.id
    assert asked.at is not None
    assert chat.append([]) == []
    assert chat.history() == []


def test_what_is_no_message_is_an_error() -> None:
    chat = NullMemory().chat("a")
    with pytest.raises(InvalidInput):
        chat.append(role="user", content=" ")
    with pytest.raises(InvalidInput):
        chat.append([{"role": "nobody", "content": "x"}])
    with pytest.raises(InvalidInput):
        NullMemory().chat("")


def test_a_record_says_what_it_would_have_been() -> None:
    memory = NullMemory(user="ada", agent="coach")
    until = datetime(2027, 1, 1, tzinfo=UTC)
    record = memory.remember(
        "Runs in Berlin", "insight", tags=["sport"], until=until, by="user", chat="a", messages=3
    )
    assert (record.kind, record.text, record.version) == ("insight", "Runs in Berlin", 0)
    assert (record.tags, record.until, record.by) == (("sport",), until, "user")
    assert (record.chat, record.messages, record.agent) == ("a", (3, 3), "coach")
    assert memory.retract("rec_1").retracted
    texts = [(one.kind, one.text) for one in remember_fil(memory, ["a"], lessons=["b", "c"])]
    assert texts == [("finding", "a"), ("lesson", "b"), ("lesson", "c")]
    note = memory.chat("a").run("r").remember("Step two")
    assert (note.kind, note.target, note.run, note.chat) == ("note", "run", "r", "a")


def test_it_acts_for_those_whom_acting_as_names() -> None:
    memory = NullMemory()
    with acting_as(user="bob", agent="coach", chat="a", source="user"):
        assert memory.scope.user == "bob"
        assert memory.chat().id == "a"
        assert memory.remember("x").by == "user"
    assert memory.scoped(user="eve").chat("b") == memory.scoped(user="eve").chat("b")


def test_its_tools_are_not_for_a_chat_of_another_user() -> None:
    chat = NullMemory(user="bob").chat("a")
    with pytest.raises(InvalidInput, match="another user"):
        NullMemory(user="ada").tools(chat)


def test_its_tools_work_and_find_nothing() -> None:
    memory = NullMemory()
    tools = {tool.name: tool for tool in memory.tools(memory.chat("a"))}
    assert tools["recall"]({"query": "Berlin"}).ok
    assert tools["remember"]({"text": "Runs in Berlin"}).ok
    assert not tools["expand"]({"id": "rec_1"}).ok


def test_a_pad_forgets() -> None:
    for pad in (
        NullMemory().scratchpad,
        NullMemory().chat("a").scratchpad,
        NullMemory().chat("a").run().scratchpad,
    ):
        pad["week"] = "1"
        pad["temp:key"] = "secret"
        assert (len(pad), list(pad), pad.get("week"), "week" in pad) == (0, [], None, False)
        assert (pad.list(), pad.search("1"), pad.stored()) == ([], {}, {})
        pad.clear()
        with pytest.raises(KeyError):
            del pad["week"]


@pytest.mark.parametrize("name", ["describe", "expand"])
def test_no_summary_has_the_id(name: str) -> None:
    with pytest.raises(InvalidInput, match="no such summary"):
        getattr(NullMemory().chat("a"), name)("sum_1")


def test_it_can_be_used_after_it_was_closed() -> None:
    memory = NullMemory()
    memory.close()
    memory.close()
    assert memory.recall("Berlin") == []


# Awaited


def test_what_is_awaited_is_the_same() -> None:
    async def use() -> None:
        async with NullMemory(user="ada").aio as memory:
            chat = memory.chat("a")
            stored = await chat.append(role="user", content="Berlin")
            assert stored.seq == 1
            assert await chat.history() == []
            assert (await chat.compact(llm=str.upper)).noop
            assert await memory.recall("Berlin") == []
            assert await (await memory.at(3)).recall("Berlin") == []
            assert (await memory.remember("x")).text == "x"
            assert memory.scoped(user="bob").scope.user == "bob"
            await memory.scratchpad.set("week", "1")
            assert await memory.scratchpad.get("week") is None
            assert chat == chat
            memory.on("learned", print)()
            async with chat.run() as begun:
                assert begun.chat.id == "a"
                assert (await begun.remember("Step two")).kind == "note"
                await begun.scratchpad.clear()
            assert memory.name == "null"
            (recall,) = memory.tools(chat, allow=["recall"])
            assert recall.name == "recall"
            assert (await recall({"query": "Berlin"})).ok

    asyncio.run(use())


@each(
    ("kind", "make"),
    [
        (AsyncMemory, lambda: NullMemory().aio),
        (AsyncChat, lambda: NullMemory().aio.chat("a")),
        (AsyncScratchpad, lambda: NullMemory().aio.scratchpad),
        (AsyncRun, lambda: NullMemory().aio.chat("a").run()),
    ],
)
def test_awaited_it_has_the_types_of_a_memory(kind: type, make: Callable[[], object]) -> None:
    assert isinstance(make(), kind)


# What it costs

USE = """
import json, sys, threading
from holdfast.providers.null import NullMemory
with NullMemory("agent.db", user="ada") as memory:
    chat = memory.chat("a")
    chat.append(role="user", content="Berlin")
    chat.prompt(query="Berlin?"), memory.recall("Berlin"), memory.remember("Berlin")
    memory.scratchpad.get("week")
    memory.learning.work(), chat.end(), chat.compact(), memory.changes()
heads = {name.split(".")[0] for name in sys.modules}
print(json.dumps([sorted(heads), threading.active_count()]))
"""
HEAVY = {"numpy", "asyncio", "Stemmer", "pydantic_ai", "openai", "psycopg", "typer", "ssl"}


def test_it_loads_nothing_heavy_and_opens_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    heads, threads = json.loads(run(USE))
    assert HEAVY.isdisjoint(heads)
    assert threads == 1
    assert list(tmp_path.iterdir()) == []


def test_traced_it_can_be_awaited_as_well() -> None:
    memory = traced(NullMemory(), on_event=lambda _: None)

    async def said() -> int:
        chat = memory.aio.chat("monday")
        await chat.append(role="user", content="Hello.")
        return len(await chat.history())

    assert asyncio.run(said()) == 0
