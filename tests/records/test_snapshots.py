"""Snapshots: what a chat knows is frozen at its first prompt, and moves on when the chat itself writes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, suppress
from datetime import UTC, datetime, timedelta

import pytest

from holdfast import Chat, Memory, acting_as
from programs import start
from record_lists import fresh
from tables import each

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
QUESTION = "what about marathons?"


def frozen(chat: Chat) -> str:
    """Give the part of a prompt that shows what is known; only of a chat that exists it is kept."""
    if not chat.stats().messages:
        chat.append(role="assistant", content="Good morning.")
    return chat.prompt().system


def recalled(chat: Chat) -> list[str]:
    """Give the records that a prompt recalls."""
    return [hit.text for hit in chat.prompt(query=QUESTION).hits if hit.source == "record"]


# When it is frozen; that the first prompt does it, and version 0 as well, is in the suite for providers


def test_a_prompt_of_a_chat_that_does_not_exist_writes_nothing_and_shows_what_is_known_now(
    memory: Memory,
) -> None:
    chat = memory.chat("monday")
    memory.remember("old", "soul")
    memory.remember("marathons need shoes", "finding")
    with chat.run() as run:
        for prompt in (chat.prompt(query=QUESTION), run.prompt(query=QUESTION)):
            assert "old" in prompt.system
            assert [hit.text for hit in prompt.hits] == ["marathons need shoes"]
        assert chat.snapshot() is None
    memory.remember("new", "soul")
    assert "new" in chat.prompt().system
    assert (chat.snapshot(), chat.stats().messages, memory.chats()) == (None, 0, [])
    assert "new" in frozen(chat)
    assert chat.snapshot() == 3


# What the chat itself does not write; what else changes no prompt is in `test_any_records.py`.
OTHERS: list[Callable[[Memory], object]] = [
    lambda memory: memory.remember("marathons now", "soul", by="user"),
    lambda memory: memory.chat("tuesday").remember("marathons now", merge=False),
    lambda memory: memory.chat("monday").remember("marathons now", "profile", by="reflect"),
    lambda memory: memory.remember("marathons now", "finding", by="reflect", chat="monday"),
    lambda memory: memory.remember("marathons now", "finding", by="import", chat="monday"),
    lambda memory: memory.replace("known marathons", "marathons now"),
    lambda memory: memory.retract("known marathons"),
    lambda memory: memory.undo(),
    lambda memory: memory.scoped(user="").remember("marathons now", "constraint", by="user"),
    lambda memory: memory.scoped(user="bob").chat("monday").remember("marathons now", merge=False),
    lambda memory: memory.chat("monday").append(role="user", content="more about marathons"),
    lambda memory: memory.remember("a note", "note", chat="monday", by="reflect"),
    lambda memory: memory.remember("a plan", "note", target="plan"),
    lambda memory: (memory.chat("monday").notes(), [memory.get(one.id) for one in memory.records()]),
    lambda memory: memory.chat("monday").scratchpad.update({"step": "1"}),
    lambda memory: memory.chat("monday").archive(),
    lambda memory: memory.scoped(agent="cook").remember("I cook", "soul"),
    lambda memory: memory.chat("monday").run().end(),
]


@each("write", OTHERS)
def test_what_others_write_does_not_change_a_prompt(write: Callable[[Memory], object]) -> None:
    memory = fresh()
    memory.remember("Never on Mondays", "constraint", by="user")
    memory.remember("Ada runs", priority=3, merge=False)
    memory.remember("an old note", "note", chat="monday")
    memory.remember("first", "soul")
    memory.remember("known marathons", "finding")
    memory.remember("known marathons too", "insight")
    memory.retract("known marathons too")
    chat = memory.chat("monday")
    frozen(chat)
    chat.prompt(query=QUESTION)
    before = chat.prompt(query=QUESTION)
    assert before.tokens["unchanged"] == before.tokens["total"] > 0
    snapshot, messages = chat.snapshot(), chat.stats().messages
    write(memory)
    assert (chat.prompt().system, chat.snapshot()) == (before.system, snapshot)
    assert recalled(chat) == ["known marathons"]
    assert chat.prompt(query=QUESTION) == before or chat.stats().messages > messages


def test_recall_outside_of_a_prompt_and_messages_within_are_as_of_now(memory: Memory) -> None:
    chat = memory.chat("monday")
    assert frozen(chat) == ""
    memory.remember("marathons need shoes", "finding")
    memory.chat("tuesday").append(role="user", content="marathons are long")
    assert len(memory.recall(QUESTION)) == 2
    assert [hit.text for hit in chat.prompt(query=QUESTION).hits] == ["marathons are long"]


# How it moves on


IN_THE_CHAT: list[Callable[[Memory], object]] = [
    lambda memory: memory.chat("monday").remember("Ada swims", merge=False),
    lambda memory: memory.chat("monday").remember("Ada swims", by="tool", merge=False),
    lambda memory: memory.remember("Ada swims", chat="monday", merge=False),
    lambda memory: memory.replace("Ada runs", "Ada swims", chat="monday"),
    lambda memory: memory.retract("Ada runs", chat="monday"),
    lambda memory: memory.remember(["Ada swims"], "finding", chat="monday"),
]
ANYWHERE: list[Callable[[Memory], object]] = [
    lambda memory: memory.remember("Ada swims", merge=False),
    lambda memory: memory.remember(["Ada swims", "Ada rows"], "finding"),
    lambda memory: memory.replace("Ada runs", "Ada swims"),
    lambda memory: memory.retract("Ada runs"),
    lambda memory: memory.retract_all(kind="fact"),
    lambda memory: memory.undo(),
    lambda memory: memory.rollback("soul", 1),
]


@each("acting", [False, True])
@each("write", [*IN_THE_CHAT, *ANYWHERE])
def test_what_a_chat_writes_itself_is_in_its_next_prompt(
    write: Callable[[Memory], object], acting: bool
) -> None:
    memory = fresh()
    memory.remember("first", "soul")
    memory.remember("second", "soul")
    memory.remember("Ada runs", merge=False)
    chat, other = memory.chat("monday"), memory.chat("tuesday")
    before = frozen(chat)
    assert frozen(other) == before
    with acting_as(chat="monday") if acting else nullcontext():
        write(memory)
    by_itself = acting or write in IN_THE_CHAT
    assert chat.snapshot() == (memory.version() if by_itself else 3)
    assert (frozen(chat) != before) is (by_itself and memory.changes(limit=1)[0].kind != "finding")
    assert other.snapshot() == 3, "the other chat stays"
    with acting_as(chat="monday", source="reflect"):
        memory.remember("Ada reflects", "insight")
    assert chat.snapshot() == (memory.version() - 1 if by_itself else 3)


# Byte for byte


def test_times_of_validity_that_pass_do_not_change_a_prompt(location: str) -> None:
    times = [NOON]
    with Memory(location, user="ada", clock=lambda: times[-1]) as memory:
        memory.remember("Ada lives in Berlin", until=NOON + HOUR, merge=False)
        memory.remember("Ada lives in Lisbon", since=NOON + HOUR, merge=False)
        memory.remember("marathons this week", "finding", until=NOON + HOUR)
        chat = memory.chat("monday")
        frozen(chat)
        before = chat.prompt(query=QUESTION)
        assert "Berlin" in before.system
        assert "Lisbon" not in before.system
        assert "marathons this week" in str(before.messages)
        times.append(NOON + 2 * HOUR)
        same = chat.prompt(query=QUESTION)
        assert (same.system, same.messages) == (before.system, before.messages)
        assert "Lisbon" in frozen(memory.chat("tuesday"))
        chat.refresh()
        after = chat.prompt(query=QUESTION)
    assert "Lisbon" in after.system
    assert "Berlin" not in after.system
    assert "this week" not in str(after.messages)


# What a chat writes and what its prompts show are one transaction


WRITES: dict[str, Callable[[Memory], object]] = {
    "remember": lambda memory: memory.remember("Ada grows tulips"),
    "replace": lambda memory: memory.replace("roses", "Ada grows tulips"),
    "retract": lambda memory: memory.retract("roses"),
    "undo": lambda memory: memory.undo(),
}


class Stopped(BaseException):
    """The program ends, at a moment of which the memory knows nothing."""


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("moment", range(1, 4))
def test_what_a_chat_wrote_is_shown_wherever_it_was_stopped(
    location: str, write: Callable[[Memory], object], moment: int
) -> None:
    left = 10**9

    def clock() -> datetime:
        nonlocal left
        left -= 1
        if not left:
            raise Stopped
        return NOON

    with Memory(location, user="ada", clock=clock) as memory:
        memory.remember("Ada grows roses")
        chat = memory.chat("monday")
        assert "roses" in frozen(chat)
        left = moment
        with suppress(Stopped), acting_as(chat="monday"):
            write(memory)
        left = 10**9
        known = [one.text for one in memory.records(kind="fact")]
        shown = [text for text in ("Ada grows roses", "Ada grows tulips") if text in chat.prompt().system]
        assert shown == known


KILLED = """
import os, signal, sys
from datetime import UTC, datetime
from holdfast import Memory

left = 10**9

def clock():
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    return datetime(2026, 3, 1, 12, tzinfo=UTC)

with Memory(sys.argv[1], user="ada", clock=clock) as memory:
    left = int(sys.argv[2])
    memory.chat("monday").remember(f"Ada grows tulips of kind {left}", merge=False)
"""


@pytest.mark.slow
def test_what_a_chat_wrote_is_shown_when_its_process_is_killed(
    reopen: Callable[[], Memory], shared_location: str
) -> None:
    frozen(reopen().chat("monday"))
    ends = []
    for moment in range(1, 4):
        program = start(KILLED, shared_location, moment)
        program.communicate()
        ends.append(program.returncode)
        memory = reopen()
        known = memory.records(kind="fact")
        shown = memory.chat("monday").prompt().system
        assert all(one.text in shown for one in known)
    assert ends == [-9, 0, 0]


def test_a_chat_that_another_process_begins_anew_freezes_what_it_shows(reopen: Callable[[], Memory]) -> None:
    memory, other = reopen(), reopen()
    chat = memory.chat("a")
    chat.append(role="user", content="Hello")
    chat.prompt(500)
    other.erase(chat="a")
    other.chat("a").append(role="user", content="Hello again")
    other.remember("Likes tea")
    assert "tea" in chat.prompt(500).system
    other.remember("Likes coffee")
    assert "coffee" not in chat.prompt(500).system
