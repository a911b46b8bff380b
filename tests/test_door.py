"""What a program meets at the door: signatures with all options, and answers to what is not there."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

import holdfast
from handles import TWINS
from holdfast import HoldfastError, InvalidInput, Memory
from holdfast.providers.null import NullMemory
from tables import each

METHODS = [
    (handle, name)
    for handle in (*TWINS, *TWINS.values())
    for name, method in inspect.getmembers(handle, inspect.isfunction)
    # A scratchpad has some of `MutableMapping`.
    if not name.startswith("_") and method.__module__.startswith("holdfast")
]
NULL: Any = NullMemory()
CONSTRUCTORS = [(Memory, "__init__")]


# Signatures


@each(("handle", "name"), METHODS)
def test_every_option_is_in_the_signature_and_in_the_documentation(handle: type, name: str) -> None:
    method = getattr(handle, name)
    takes = [one for one in inspect.signature(method).parameters.values() if one.name != "self"]
    assert all(one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL) for one in takes)
    assert all(one.annotation is not one.empty for one in takes)
    told = re.search(r"^Args:\n(.*?)(?=^\S|\Z)", inspect.getdoc(method) or "", re.DOTALL | re.MULTILINE)
    named = re.findall(r"^    ((?:\w+, )*\w+):", told[1], re.MULTILINE) if told else []
    if handle in TWINS or told:
        assert {part for names in named for part in names.split(", ")} == {one.name for one in takes}


# Arguments that are not there


def test_every_method_refuses_an_unknown_argument(quick: Memory) -> None:
    chat = quick.chat("a")
    facets = (quick.learning, quick.quarantine, quick.grants, quick.scratchpad)
    handles = (quick, chat, quick.at(0), chat.run(), *facets)
    calls = [getattr(one, name) for one in handles for kind, name in METHODS if type(one) is kind]
    for call in (*calls, partial(Memory, ":memory:")):
        with pytest.raises(InvalidInput, match="has no argument 'bogus'") as refused:
            call(bogus=1)
        assert isinstance(refused.value, TypeError)
        # What Python raised before it says nothing more.
        assert refused.value.__suppress_context__


@each(
    ("call", "said"),
    [
        (lambda memory: memory.recall("x", k=5), "recall() has no argument 'k'. Did you mean 'limit'?"),
        (lambda memory: memory.recall(q="x"), "Did you mean 'query'?"),
        (lambda memory: memory.recall("x", user_id="a"), "It is one of the handle: `memory.scoped(user=…)`."),
        (lambda memory: memory.recall("x", filters={}), "Did you mean 'where'?"),
        (lambda memory: memory.undo(xyz=1), "undo() has no argument 'xyz'. Use by."),
        (lambda memory: memory.close(xyz=1), "close() has no argument 'xyz'. Leave it out."),
        (lambda memory: memory.chat("a").append(role="user", text="x"), "Did you mean 'content'?"),
        (lambda memory: memory.chat("a").append(messages=[]), "Pass it first, without its name: append(…)."),
        (lambda memory: asyncio.run(memory.aio.recall("x", k=5)), "Did you mean 'limit'?"),
        (lambda memory: asyncio.run(memory.aio.chat("a").compact(max_tokens=5)), "Did you mean 'budget'?"),
        (lambda memory: type(memory)(path="x"), "Memory() has no argument 'path'. Did you mean 'location'?"),
        (lambda memory: NULL.recall("x", k=5), "Did you mean 'limit'?"),
    ],
)
def test_the_argument_that_is_meant_is_named(quick: Memory, call: Callable[[Any], object], said: str) -> None:
    with pytest.raises(TypeError, match=re.escape(said)) as refused:
        call(quick)
    assert isinstance(refused.value, HoldfastError)


def test_an_error_of_the_caller_stays_as_it_is(quick: Memory) -> None:
    def broken(_: str) -> int:
        raise TypeError("mine")

    with Memory(":memory:", count_tokens=broken) as memory, pytest.raises(TypeError, match=r"^mine$"):
        memory.chat("a").append(role="user", content="Hello")
    with pytest.raises(TypeError, match="missing 1 required"):
        quick.recall()  # type: ignore[call-arg]  # the mistake


# Names of other libraries


@each(
    ("kind", "name", "said"),
    [
        ("Memory", "add", "no 'add'. Use 'remember'"),
        ("Memory", "search", "no 'search'. Use 'recall'"),
        ("Memory", "nonsense", "'Memory' object has no attribute 'nonsense'"),
        ("AsyncMemory", "search", "no 'search'. Use 'recall'"),
        ("Chat", "get_context", "Chat has no 'get_context'. Use 'prompt'"),
    ],
)
def test_a_name_of_another_library_names_ours(quick: Memory, kind: str, name: str, said: str) -> None:
    handle = {"Memory": quick, "AsyncMemory": quick.aio, "Chat": quick.chat("a")}[kind]
    assert not hasattr(handle, name)
    with pytest.raises(AttributeError, match=said):
        getattr(handle, name)


# One value, or a list


def lists() -> Iterator[tuple[type, str, str, str]]:
    for handle, name in (*METHODS, *CONSTRUCTORS):
        for one in inspect.signature(getattr(handle, name)).parameters.values():
            if found := re.search(r"(?:Iterable|Sequence)\[(\w+)\]", str(one.annotation)):
                yield handle, name, one.name, found[1]


@each(("handle", "name", "parameter", "item"), list(lists()))
def test_one_value_is_taken_wherever_a_list_is(handle: type, name: str, parameter: str, item: str) -> None:
    annotation = str(inspect.signature(getattr(handle, name)).parameters[parameter].annotation)
    assert re.search(rf"(?:^|\| ){item}(?: \||$)", re.sub(r"\w+\[\w+\]", "…", annotation)), annotation


@pytest.fixture
def known(quick: Memory) -> Memory:
    quick.chat("a").append(role="user", content="I run in Berlin.")
    quick.remember("Trains for the Berlin marathon", tags="race")
    return quick


def test_one_value_stands_for_a_list_of_it(known: Memory) -> None:
    for option, value in {"roles": "user", "kinds": "fact", "sources": "record", "tags": "race"}.items():
        one: dict[str, Any] = {option: value}
        several: dict[str, Any] = {option: [value]}
        assert known.recall("berlin", **one) == known.recall("berlin", **several) != []
    with pytest.raises(InvalidInput, match="fct"):
        known.recall("berlin", kinds="fct")
    [record] = known.records(tags="race")
    assert record.tags == ("race",)
    assert known.retract_all(tags="race") != []
    assert [tool.name for tool in known.tools(allow="recall")] == ["recall"]
    assert known.tools(allow="remember", read_only="records") == []
    assert known.scoped(reads="project:shop").scope.reads == ("project:shop",)
    assert NULL.remember("Trains", tags="race").tags == ("race",)
    with Memory(":memory:", reads="project:shop", kinds=holdfast.Kind("decision")) as memory:
        assert memory.remember("We keep it in one file.", "decision").kind == "decision"


# What a debugger shows


# What a type checker takes
