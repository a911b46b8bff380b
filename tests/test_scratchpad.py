"""Pads: dicts of texts that are kept, at the level of a user, a chat, and a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Denied, InvalidInput, Memory, Scratchpad
from programs import run_together
from soak import cases
from tables import each


@pytest.fixture(scope="module")
def spaces() -> Iterator[Iterator[Memory]]:
    """Give one empty memory after the other, for the examples of a property."""
    with Memory(":memory:") as memory:
        yield (memory.scoped(user=f"user{n}") for n in range(1_000_000))


# A pad is a dict

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=8).filter(
    str.strip
)
VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20)
STEPS = st.tuples(
    st.sampled_from(["set", "delete", "get", "pop", "setdefault", "update", "clear"]),
    NAMES | st.sampled_from(["a", "b", "temp:a", "A"]),
    VALUES,
)
Texts = MutableMapping[str, str]


def step(texts: Texts, what: str, name: str, value: str) -> object:
    """Do one thing that every dict can do, and give what comes of it."""
    try:
        if what == "set":
            texts[name] = value
        elif what == "delete":
            del texts[name]
        elif what == "get":
            return texts.get(name), texts.get(name, value), name in texts
        elif what == "pop":
            return texts.pop(name), texts.pop(name, value)
        elif what == "setdefault":
            return texts.setdefault(name, value)
        elif what == "update":
            texts.update({name: value, "b": value}, c=value)
        else:
            texts.clear()
    except KeyError as error:
        return "KeyError", error.args
    return None


@settings(max_examples=cases(20, 240))
@given(st.lists(STEPS, max_size=15), st.sampled_from(["user", "chat", "run"]))
def test_a_pad_does_what_a_dict_does(
    spaces: Iterator[Memory], steps: list[tuple[str, str, str]], level: str
) -> None:
    memory = next(spaces)
    chat = memory.chat("monday")
    pad: Scratchpad = {
        "user": lambda: memory.scratchpad,
        "chat": lambda: chat.scratchpad,
        "run": lambda: chat.run().scratchpad,
    }[level]()
    model: dict[str, str] = {}
    for one in steps:
        assert step(pad, *one) == step(model, *one)
        assert dict(pad) == model
        assert pad == model
        assert len(pad) == len(model)
        assert bool(pad) == bool(model)
        assert list(pad) == list(pad.keys()) == sorted(model), "in the order of the names"
        assert list(pad.items()) == sorted(model.items())


@each(
    ("text", "kept"),
    [
        *((text, text) for text in ("", "a\nb\r\n\tc\u2028d\x85", "🏃‍♀️ é é 日本", "x" * 100_000)),
        ("a\x00b\ud800c", "a\ufffdb\ufffdc"),
    ],
)
def test_a_value_is_kept_as_it_is_but_for_what_no_database_keeps(quick: Memory, text: str, kept: str) -> None:
    quick.scratchpad["name"] = text
    assert quick.scratchpad["name"] == kept


@pytest.mark.parametrize("name", ["%", "_", "\u00e9", "e\u0301", " a ", "Temp:x", "temp", "TEMP:y", "'\"\\"])
def test_a_name_is_only_itself(memory: Memory, name: str) -> None:
    memory.scratchpad["other"] = "1"
    memory.scratchpad[name] = "2"
    assert dict(memory.scratchpad) == {"other": "1", name: "2"}
    assert memory.scratchpad.list(name) == [name]
    del memory.scratchpad[name]
    assert dict(memory.scratchpad) == {"other": "1"}


@each(
    ("name", "value"),
    [
        *((name, "value") for name in ("", "  ", "a\nb", "temp:a\nb", "a\x00b", "\ud800", "x" * 513, 5)),
        *(("name", value) for value in (5, None, b"a", ["a"], {"a": 1}, "x" * 100_001)),
    ],
)
def test_what_cannot_be_kept_is_refused(quick: Memory, name: object, value: object) -> None:
    quick.scratchpad["name"] = "before"
    with pytest.raises(InvalidInput):
        quick.scratchpad[name] = value  # type: ignore[index,assignment]  # that is what is tested
    assert dict(quick.scratchpad) == {"name": "before"}


# Finding


def test_names_are_listed_by_their_beginning(memory: Memory) -> None:
    memory.scratchpad.update(
        {"user.name": "Ada", "user.city": "Berlin", "User.age": "36", "temp:user.x": "1", "use": "2"}
    )
    assert memory.scratchpad.list() == sorted(memory.scratchpad)
    assert memory.scratchpad.list("user.") == ["user.city", "user.name"]
    assert memory.scratchpad.list("temp:") == ["temp:user.x"]
    assert memory.scratchpad.list("nothing") == []


def test_search_looks_at_names_and_values_in_any_case(memory: Memory) -> None:
    memory.scratchpad.update({"city": "Berlin", "street": "Hauptstraße 1", "Born in MÜNCHEN": "yes"})
    memory.scratchpad.update({"share": "5 %", "temp:word": "Secret"})
    for text, found in {
        "BERLIN": ["city"],
        "CI": ["city"],
        "STRASSE": ["street"],
        "münchen": ["Born in MÜNCHEN"],
        "%": ["share"],
        "_": [],
        "secret": ["temp:word"],
        "": ["Born in MÜNCHEN", "city", "share", "street", "temp:word"],
    }.items():
        assert list(memory.scratchpad.search(text)) == found
        assert memory.scratchpad.search(text) == {name: memory.scratchpad[name] for name in found}
    with pytest.raises(InvalidInput):
        memory.scratchpad.search(5)  # type: ignore[arg-type]  # that is what is tested


# Levels


def levels(memory: Memory) -> list[Scratchpad]:
    """List the scratchpads that a user has in three chats and runs."""
    chats = [memory.chat(name) for name in ("monday", "tuesday")]
    runs = [chats[0].run("one"), chats[0].run("two"), chats[1].run("three")]
    return [memory.scratchpad, *(one.scratchpad for one in chats), *(one.scratchpad for one in runs)]


def test_users_chats_and_runs_have_pads_of_their_own_and_agents_have_not(memory: Memory) -> None:
    others = [memory, memory.scoped(user="bob"), memory.scoped(tenant="acme"), memory.scoped(user="")]
    pads = [pad for other in others for pad in levels(other)]
    for number, pad in enumerate(pads):
        assert dict(pad) == {}
        pad["name"], pad["temp:name"] = f"value {number}", f"temporary {number}"
    for number, pad in enumerate(pads):
        assert dict(pad) == {"name": f"value {number}", "temp:name": f"temporary {number}"}
        assert pad.search("value") == {"name": f"value {number}"}
    assert list(map(dict, levels(memory.scoped(agent="cook")))) == list(map(dict, levels(memory)))
    pads[1].clear()
    assert [len(pad) for pad in levels(memory)] == [2, 0, 2, 2, 2, 2]


def test_a_pad_is_no_part_of_what_is_known(memory: Memory) -> None:
    memory.scratchpad["marathon"] = "marathon in May"
    memory.chat("monday").scratchpad["marathon"] = "marathon in May"
    assert (memory.version(), memory.records(), memory.recall("marathon")) == (0, [], [])
    prompt = memory.chat("monday").prompt(query="marathon")
    assert (prompt.system, prompt.messages) == ("", [])


# What is kept, and what never is


@pytest.mark.slow
def test_many_writers_lose_nothing(shared_location: str) -> None:
    script = """
import sys
from holdfast import Memory
with Memory(sys.argv[1], user="ada") as memory:
    print("ready", flush=True)
    input()
    for n in range(20):
        memory.scratchpad[f"{sys.argv[2]} {n}"] = str(n)
"""
    run_together(script, [(shared_location, writer) for writer in "ab"])
    with Memory(shared_location, user="ada") as memory:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda n: memory.scratchpad.update({f"c {n}": str(n)}), range(20)))
        assert len(memory.scratchpad) == 60


def test_temporary_values_are_in_no_byte_of_the_file(tmp_path: Path) -> None:
    key = "sk-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
    with Memory(tmp_path / "memory.db", user="ada") as memory, memory.chat("monday").run() as run_:
        for pad in (memory.scratchpad, memory.chat("monday").scratchpad, run_.scratchpad):
            pad["temp:key"] = key
            pad["temp:zqnameqz"] = "zqvalueqz"
            pad["kept"] = "zqkeptqz"
            assert pad["temp:key"] == key
            assert "temp:key" not in pad.stored()
        prompt = run_.prompt()
        assert "zqkeptqz" in prompt.system
        assert "zqvalueqz" not in prompt.system
        memory.verify(repair=True)
        written = b"".join(file.read_bytes() for file in tmp_path.iterdir())
        assert b"zqkeptqz" in written
        assert not [word for word in (key, "zqnameqz", "zqvalueqz") if word.encode() in written]
    with Memory(tmp_path / "memory.db", user="ada") as memory:
        assert dict(memory.scratchpad) == {"kept": "zqkeptqz"}


def test_temporary_values_stay_within_their_memory(reopen: Callable[[], Memory]) -> None:
    one, other = reopen(), reopen()
    one.scratchpad["temp:key"] = "value"
    assert dict(other.scratchpad) == {}
    assert dict(one.scoped(agent="coach").scratchpad) == {"temp:key": "value"}


CREDENTIALS = [
    ("login", "AKIA" + "Q3EGRGB2M4XPIX5T"),
    (
        "login",
        "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj\n-----END PRIVATE KEY-----",
    ),
    ("login", "postgresql://ada:correcthorse@db.example.com/app"),
    ("password", "tr0ub4dor&3xyz!"),
]


@each(("name", "secret"), CREDENTIALS)
def test_a_credential_is_refused_and_the_way_out_is_named(quick: Memory, name: str, secret: str) -> None:
    pad = quick.chat("monday").scratchpad
    pad[name] = "before"
    with pytest.raises(Denied, match=f"temp:{name}") as raised:
        pad.update({"harmless": "yes", name: secret})
    assert secret not in str(raised.value)
    assert pad[name] == "before"
    pad[f"temp:{name}"] = secret
    assert pad[f"temp:{name}"] == secret
