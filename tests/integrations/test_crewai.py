"""CrewAI's memory in a memory of ours: its crews and its Memory with a scripted model, without a network."""

from __future__ import annotations

import copy
import json
import os
import socket
import warnings
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from hashlib import md5
from importlib.util import find_spec
from math import sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Damaged, Memory

if not find_spec("crewai"):
    pytest.skip("needs: pip install '.[crewai]', apart from the rest", allow_module_level=True)
# The second one disables all tracing of this process, so only where nothing else is tested.
os.environ["CREWAI_DISABLE_TELEMETRY"] = os.environ["OTEL_SDK_DISABLED"] = "true"
with warnings.catch_warnings():
    # It warns of itself when it is imported.
    warnings.simplefilter("ignore")
    from crewai import Agent, Crew, Task
    from crewai.llms.base_llm import BaseLLM
    from crewai.memory.storage.backend import StorageBackend
    from crewai.memory.types import MemoryRecord
    from crewai.memory.unified_memory import Memory as CrewMemory

from holdfast.integrations.crewai import HoldfastStorage
from soak import cases

pytestmark = pytest.mark.filterwarnings("ignore")
NOON = datetime(2026, 3, 1, 12)  # noqa: DTZ001 - as CrewAI makes its times


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test reach anything but the database on this machine."""
    connect = socket.socket.connect

    def local(self: socket.socket, address: object) -> None:
        assert isinstance(address, str), f"connects to {address}"
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", local)


@pytest.fixture
def storage(memory: Memory) -> HoldfastStorage:
    return HoldfastStorage(memory)


class Scripted(BaseLLM):  # type: ignore[misc]
    """A model that answers a task, and asked for memories gives those that its script has."""

    facts: list[str] = []  # noqa: RUF012 - a field of pydantic
    asked: list[str] = []  # noqa: RUF012

    def call(self, messages: object, *_: object, **__: object) -> str:
        text = json.dumps(messages)
        self.asked.append(text)
        if "Extract memory statements" in text:
            return json.dumps({"memories": self.facts})
        if "structured output" in text:
            places = {"suggested_scope": "/races", "categories": ["race"], "importance": 0.9}
            return json.dumps({**places, "extracted_metadata": {}})
        return "Final Answer: Berlin it is."

    def supports_function_calling(self) -> bool:
        return False


def embed(texts: Sequence[str]) -> list[list[float]]:
    """Return vectors of texts, near each other for texts with the same words."""
    made = []
    for text in texts:
        vector = [0.0] * 64
        for word in text.lower().replace(".", "").split():
            vector[md5(word.encode()).digest()[0] % 64] += 1
        made.append(vector)
    return made


def record(
    id: str, scope: str = "/", *, vector: Sequence[float] | None = None, **more: object
) -> MemoryRecord:
    return MemoryRecord(id=id, content=f"content of {id}", scope=scope, embedding=vector, **more)


def ids(found: Sequence[tuple[MemoryRecord, float]]) -> list[str]:
    return [one.id for one, _ in found]


# Whole runs -------------------------------------------------------------------------------------------------


def test_what_a_crew_learns_the_next_one_is_shown(memory: Memory) -> None:
    llm = Scripted(model="scripted", facts=["Ada runs the Berlin marathon."], asked=[])
    kept = CrewMemory(storage=HoldfastStorage(memory), llm=llm, embedder=embed)
    coach = Agent(role="Coach", goal="Train runners", backstory="A runner", llm=llm)
    task = Task(description="Which marathon does Ada run?", expected_output="A name", agent=coach)
    assert Crew(agents=[coach], tasks=[task], memory=kept).kickoff().raw == "Berlin it is."
    kept.drain_writes()
    assert [one.content for one in kept.list_records()] == ["Ada runs the Berlin marathon."]
    kept.close()
    llm.asked.clear()
    # As after a restart.
    again = CrewMemory(storage=HoldfastStorage(memory), llm=llm, embedder=embed)
    Crew(agents=[coach], tasks=[task], memory=again).kickoff()
    again.drain_writes()
    assert "Ada runs the Berlin marathon." in llm.asked[0]
    again.close()
    assert memory.verify().ok


# The protocol -----------------------------------------------------------------------------------------------


def test_a_record_comes_back_as_it_was_stored(storage: HoldfastStorage) -> None:
    assert isinstance(storage, StorageBackend)
    assert copy.deepcopy(storage) is storage
    whole = MemoryRecord(
        id="a/b%",
        content="Broken \ud800 and \x00",
        scope="/team/",
        categories=["x", "ä"],
        metadata={"deep": [{"a": None}]},
        importance=0.25,
        created_at=NOON,
        last_accessed=NOON.replace(tzinfo=UTC),
        embedding=[0.5, -0.25],
        source="ada",
        private=True,
    )
    bare = MemoryRecord(content="No vector")
    storage.save([whole, bare])
    assert [storage.get_record(one) for one in ("a/b%", bare.id, "unknown")] == [whole, bare, None]
    storage.touch_records(["a/b%", "unknown"])
    touched = storage.get_record("a/b%")
    assert touched is not None
    assert touched.last_accessed > NOON
    storage.update(whole)
    assert storage.get_record("a/b%") == whole


def test_users_and_tenants_do_not_see_each_others_records(app: Memory) -> None:
    HoldfastStorage(app.scoped(user="ada")).save([record("a", vector=[1, 0])])
    for other in (app.scoped(user="bob"), app.scoped(tenant="acme", user="ada")):
        foreign = HoldfastStorage(other)
        assert foreign.get_record("a") is None
        assert foreign.search([1, 0]) == []
        assert foreign.delete(record_ids=["a"]) == 0
        foreign.reset()
    assert HoldfastStorage(app.scoped(user="ada")).count() == 1


def test_a_record_that_cannot_be_read_is_named(storage: HoldfastStorage) -> None:
    storage.save([record("a")])
    table = storage._records._table
    table.put({"record/a": table.get("record/a").data.replace(b'"content"', b'"contend"')})  # type: ignore[union-attr]
    with pytest.raises(Damaged, match="Update crewai"):
        storage.get_record("a")


# Beside a list ----------------------------------------------------------------------------------------------

NAMES = st.sampled_from("abcde")
SCOPES = st.sampled_from(["/", "/x", "/x/y", "/xy", "/z"])
VECTORS = st.sampled_from([None, [1.0, 0.0], [0.0, 2.0], [-1.0, 1.0], [0.0, 0.0]])
STEPS = st.one_of(
    st.tuples(st.just("save"), NAMES, SCOPES, VECTORS),
    st.tuples(st.just("delete"), NAMES, SCOPES, st.none()),
    st.tuples(st.just("reset"), NAMES, SCOPES, st.none()),
)


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    length = sqrt(sum(x * x for x in one)) * sqrt(sum(x * x for x in other))
    return max(0.0, sum(x * y for x, y in zip(one, other, strict=True)) / length) if length else 0.0


def is_in(scope: str, other: str) -> bool:
    return other == "/" or scope == other or scope.startswith(f"{other}/")


@settings(max_examples=cases(12, 150))
@given(st.lists(STEPS, max_size=15))
def test_each_answer_is_that_of_a_list(steps: list[tuple[str, str, str, list[float] | None]]) -> None:
    with Memory(":memory:") as memory:
        writer, reader = HoldfastStorage(memory), HoldfastStorage(memory)
        kept: dict[str, MemoryRecord] = {}
        for number, (kind, name, scope, vector) in enumerate(steps):
            if kind == "save":
                kept[name] = record(
                    name, scope, vector=vector, categories=[scope], created_at=NOON + timedelta(hours=number)
                )
                writer.save([kept[name]])
            elif kind == "delete":
                gone = [id for id in kept if id == name and is_in(kept[id].scope, scope)]
                assert writer.delete(scope_prefix=scope, record_ids=[name]) == len(gone)
                kept = {id: one for id, one in kept.items() if id not in gone}
            else:
                writer.reset(scope)
                kept = {id: one for id, one in kept.items() if not is_in(one.scope, scope)}
            for one in (writer, reader):
                newest = sorted(kept.values(), key=lambda each: each.created_at, reverse=True)
                inside = [each for each in newest if is_in(each.scope, scope)]
                assert one.list_records(scope) == inside
                assert one.count(scope) == len(inside)
                found = one.search([1.0, 1.0], scope, limit=9)
                scores = {each.id: cosine(each.embedding or [0, 0], [1.0, 1.0]) for each in inside}
                assert {each.id: score for each, score in found} == pytest.approx(scores, abs=1e-6)
                assert [score for _, score in found] == sorted((s for _, s in found), reverse=True)
                assert ids(one.search([1.0, 1.0], categories=["/x"], min_score=0.5)) == [
                    each for each in ids(one.search([1.0, 1.0], min_score=0.5)) if kept[each].scope == "/x"
                ]
