"""Whatever is passed to whatever public method: it is taken, or a `HoldfastError` says what to do."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path

import pytest

from handles import TWINS
from holdfast import Denied, HoldfastError, InvalidInput, Memory, Message, Scratchpad, ToolCall
from tables import each

HANDLES = [handle for handle in TWINS if handle is not Scratchpad]
# Of no type that anything here takes; and those that pass for numbers, lists and texts until somebody writes
# them out.
NOTHING = object()
HUGE = 10**5_000
VALUES: tuple[object, ...] = (
    NOTHING, 5, HUGE, -HUGE, b"bytes", {"a": 1}, {}, ["x"], [NOTHING], ("a",), "x", True, 1.5, float("nan"),
    {"a": HUGE}, [HUGE], None,
)  # fmt: skip
REQUIRED: dict[str, object] = {
    "text": "Training for Berlin", "query": "race", "event": "learned", "observer": print,
    "llm": lambda _: "{}",
    "version": 0, "content": "Hello",
}  # fmt: skip


def parameters() -> Iterator[tuple[type, str, str]]:
    for handle in HANDLES:
        for name, method in inspect.getmembers(handle, inspect.isfunction):
            if name.startswith("_") or name == "close":
                continue
            for one in inspect.signature(method).parameters.values():
                if one.name != "self" and one.kind is not one.VAR_POSITIONAL:
                    assert one.kind is not one.VAR_KEYWORD, f"{name} hides its options"
                    yield handle, name, one.name


def call(method: Callable[..., object], parameter: str, value: object, other: object) -> Callable[[], object]:
    """Fill in what a method needs besides the value."""
    positional: list[object] = []
    parameters = inspect.signature(method).parameters
    named: dict[str, object] = {} if parameter in parameters else {parameter: value}
    for one in parameters.values():
        if one.name == parameter:
            given = value
        elif one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            given = other if one.name == "other" else REQUIRED.get(one.name, "x")
        else:
            continue
        if one.kind is one.POSITIONAL_ONLY:
            positional.append(given)
        else:
            named[one.name] = given
    return partial(method, *positional, **named)


@pytest.fixture(scope="module")
def handles() -> Iterator[dict[type, object]]:
    with Memory(":memory:", user="ada") as memory:
        chat = memory.chat("monday")
        chat.append(role="user", content="Hello there, I train for the Berlin marathon.")
        facets = (memory.learning, memory.quarantine, memory.grants)
        yield {type(one): one for one in (memory, chat, memory.at(0), chat.run("r"), *facets)}


@each(("handle", "name", "parameter"), list(parameters()))
def test_no_value_gives_a_raw_error_and_what_is_of_no_type_is_refused(
    handles: dict[type, object],
    handle: type,
    name: str,
    parameter: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)  # where a value is a path
    method = getattr(handles[handle], name)
    with pytest.raises((InvalidInput, Denied)):
        call(method, parameter, NOTHING, handles[handle])()
    for value in VALUES:
        with suppress(HoldfastError):
            call(method, parameter, value, handles[handle])()


@each("field", ["content", "id", "name", "at", "calls", "call_id", "answers", "raw", "meta"])
@each("role", ["user", "assistant", "tool"])
def test_no_field_of_a_message_gives_a_raw_error(quick: Memory, role: str, field: str) -> None:
    chat = quick.chat("monday")
    for value in VALUES:
        with suppress(HoldfastError):
            chat.append(Message(**{"role": role, "content": "Hello", field: value}))  # type: ignore[arg-type]  # that is what is tested
        with suppress(HoldfastError):
            chat.append({"role": role, "content": "Hello", field: value})
    assert chat.window(1_000).messages is not None


@each(
    ("option", "value", "what"),
    [
        ("clock", 5, "`clock` is 5"),
        ("clock", lambda: 5, "`clock` returned 5"),
        ("clock", lambda: HUGE, "`clock` returned <int"),
        ("clock", lambda: datetime.max.replace(tzinfo=timezone(-timedelta(hours=1))), "outside of the years"),
        ("clock", lambda: datetime.min.replace(tzinfo=timezone(timedelta(hours=1))), "outside of the years"),
        ("count_tokens", lambda _: "5", "`count_tokens` must be a whole number, not str"),
        ("count_tokens", lambda _: -3, "`count_tokens` is -3"),
    ],
)
def test_what_a_function_of_the_caller_returns_is_checked(option: str, value: object, what: str) -> None:
    with pytest.raises(InvalidInput, match=what), Memory(":memory:", **{option: value}) as memory:  # type: ignore[arg-type]  # that is what is tested
        memory.chat("monday").append(role="user", content="Hello")


def test_a_number_of_more_digits_than_python_writes_is_refused_in_arguments(memory: Memory) -> None:
    chat = memory.chat("monday")
    for arguments in ({"n": HUGE}, {"n": [-HUGE]}):
        with pytest.raises(InvalidInput, match="digits"):
            chat.append(role="assistant", calls=[ToolCall("c1", "find", arguments)])
        with pytest.raises(InvalidInput, match="digits"):
            chat.append(role="user", content="Hello", meta=arguments)
        with pytest.raises(InvalidInput, match="digits"):
            chat.append({"role": "user", "content": "Hello", **arguments})
