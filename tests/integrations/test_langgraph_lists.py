"""Lists of messages in checkpoints: whatever is done to them, they come back as they were put."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Annotated, Any

import pytest

pytest.importorskip("langgraph")

from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import Checkpoint, empty_checkpoint
from langgraph.checkpoint.serde.base import CipherProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from holdfast import Damaged, Memory
from holdfast.integrations.langgraph import HoldfastSaver
from holdfast.port.items import Items
from holdfast.port.texts import clean
from soak import cases

THREAD: Any = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}


class Steps:
    """Puts lists of messages as the steps of a thread."""

    def __init__(self, saver: HoldfastSaver) -> None:
        self.config: Any = THREAD
        self._saver, self._version, self._numbers = saver, 0, count(1)

    def put(self, messages: Sequence[BaseMessage]) -> Any:
        """Store a checkpoint with a list, and return its config."""
        self._version += 1
        versions: Any = {"messages": self._version}
        checkpoint: Checkpoint = {
            **empty_checkpoint(),
            "id": f"{next(self._numbers):08}",
            "channel_values": {"messages": list(messages)},
            "channel_versions": versions,
        }
        self.config = self._saver.put(self.config, checkpoint, {"source": "loop"}, versions)
        return self.config


def extended(state: list[Any], writes: Sequence[list[Any]]) -> list[Any]:
    return [*state, *(one for write in writes for one in write)]


class Seen(TypedDict):
    """A state that is rebuilt from what was written to it."""

    seen: Annotated[list[Any], DeltaChannel(extended)]


def read(saver: HoldfastSaver, config: Any) -> list[BaseMessage]:
    found = saver.get_tuple(config)
    assert found
    messages: list[BaseMessage] = found.checkpoint["channel_values"]["messages"]
    return messages


_PLACES = st.integers(0, 30)
_CHANGES = st.lists(
    st.tuples(
        st.sampled_from(
            ["add", "add", "add", "replace", "remove", "move", "edit", "again", "nameless", "read"]
        ),
        _PLACES,
        st.text(max_size=3),
    ),
    max_size=40,
)


@pytest.mark.slow
@settings(max_examples=cases(10, 120))
@given(_CHANGES)
def test_every_list_comes_back_as_it_was_put(changes: list[tuple[str, int, str]]) -> None:
    with Memory(":memory:", user="ada") as memory:
        saver = HoldfastSaver(memory)
        steps, messages, ids = Steps(saver), list[BaseMessage](), count()
        put: list[tuple[Any, list[BaseMessage]]] = []
        for change, number, text in changes:
            place = number % len(messages) if messages else 0
            if change in ("add", "nameless") or not messages:
                id = f"{('m', 'ü/~', 'x' * 600, '😀')[number % 4]}{next(ids)}"
                messages.append(HumanMessage(text, id=None if change == "nameless" else id))
            elif change == "replace":
                messages[place] = AIMessage(text, id=messages[place].id)
            elif change == "remove":
                del messages[place]
            elif change == "move":
                messages.append(messages.pop(place))
            elif change == "edit":
                messages[place].content = text
            elif change == "again":
                messages.append(messages[place])
            elif put:
                messages = read(saver, put[-1][0])
            put.append((steps.put(messages), [one.model_copy() for one in messages]))
        fresh = HoldfastSaver(memory)
        for config, expected in put:
            assert read(fresh, config) == expected == read(saver, config)
        listed = [one.checkpoint["channel_values"]["messages"] for one in fresh.list(THREAD)]
        assert listed == [expected for _, expected in reversed(put)]
        spoken = {clean(str(one.content)) for _, expected in put for one in expected}
        said = {one.content for one in saver.chat("1").history()}
        assert {one for one in spoken if one.strip()} <= said
        assert memory.verify().ok


def test_a_step_stores_as_much_at_the_end_of_a_long_list_as_at_its_beginning(memory: Memory) -> None:
    saver = HoldfastSaver(memory)
    steps, messages = Steps(saver), list[BaseMessage]()
    chat, sizes = saver.chat("1").id, list[int]()
    for number in range(80):
        messages = [*messages, HumanMessage(f"Message {number:03}", id=f"message-{number:03}")]
        steps.put(messages)
        if number in (9, 10, 78, 79):
            tables = [Items(memory, f"langgraph.{one}") for one in ("checkpoints", "values", "messages")]
            sizes.append(sum(len(item.data) for table in tables for item in table.scan(chat)))
    first, second, last_but_one, last = sizes
    assert last - last_but_one <= second - first + 8
    assert read(HoldfastSaver(memory), steps.config) == messages


@pytest.mark.parametrize("head", [b"5", b"{}", b"[]", b"[[0, 1]]", b"[[1, 1000000000000]]", b'[["1", 2]]'])
def test_a_list_that_names_no_messages_is_damaged(memory: Memory, head: bytes) -> None:
    saver = HoldfastSaver(memory)
    Steps(saver).put([HumanMessage("Hello", id="1")])
    table, chat = Items(memory, "langgraph.values"), saver.chat("1").id
    table.put({item.key: head + b"\n" for item in table.scan(chat)}, chat)
    with pytest.raises(Damaged):
        saver.get_tuple(THREAD)


class _Cipher(CipherProtocol):
    """A cipher that gives other bytes each time, as real ones do."""

    def __init__(self) -> None:
        self._nonces = count()

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        return "xor", bytes([next(self._nonces) % 256]) + bytes(one ^ 0x5A for one in plaintext)

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        return bytes(one ^ 0x5A for one in ciphertext[1:])


def test_an_encrypting_serializer_stores_each_message_once_too(memory: Memory) -> None:
    serde = EncryptedSerializer(_Cipher(), JsonPlusSerializer(allowed_msgpack_modules=None))
    saver = HoldfastSaver(memory, serde=serde)
    steps, messages = Steps(saver), list[BaseMessage]()
    for number in range(20):
        messages = [*messages, HumanMessage(f"Message {number}", id=f"m{number}")]
        steps.put(messages)
    items = Items(memory, "langgraph.messages").scan(saver.chat("1").id)
    assert len(items) == 20
    assert not any(b"Message" in item.data for item in items)
    assert read(HoldfastSaver(memory, serde=serde), steps.config) == messages


def test_pruning_keeps_what_delta_channels_are_rebuilt_from(memory: Memory) -> None:
    builder: Any = StateGraph(Seen)
    builder.add_node("see", lambda _: {"seen": ["node"]})
    builder.add_edge(START, "see")
    saver = HoldfastSaver(memory)
    graph = builder.compile(checkpointer=saver)
    config: Any = {"configurable": {"thread_id": "1"}}
    for number in range(3):
        graph.invoke({"seen": [number]}, config)
    expected = [0, "node", 1, "node", 2, "node"]
    assert graph.get_state(config).values["seen"] == expected
    saver.prune(["1"])
    assert builder.compile(checkpointer=HoldfastSaver(memory)).get_state(config).values["seen"] == expected
