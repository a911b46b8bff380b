"""Snapshots: what a chat knows is frozen at its first prompt, and moves on when the chat itself writes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, suppress
from datetime import UTC, datetime, timedelta

import pytest

from handles import memory_of
from holdfast import Chat, Memory, acting_as
from programs import run, start
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


# When it is frozen


def test_a_chat_is_frozen_by_its_first_prompt(memory: Memory) -> None:
    memory.remember("I am a patient coach.", "soul")
    chat = memory.chat("monday")
    assert chat.snapshot() is None
    chat.append(role="user", content="hello")
    chat.window()
    assert chat.snapshot() is None, "only a prompt freezes"
    assert "patient coach" in frozen(chat)
    assert chat.snapshot() == 1
    memory.remember("I am strict.", "soul")
    assert "patient coach" in frozen(chat)
    assert "strict" not in frozen(chat)
    assert chat.snapshot() == 1


def test_a_chat_is_frozen_also_when_nothing_is_known_yet(memory: Memory) -> None:
    chat = memory.chat("monday")
    assert frozen(chat) == ""
    assert chat.snapshot() == 0
    memory.remember("I am a patient coach.", "soul")
    memory.remember("marathons need shoes", "finding")
    prompt = chat.prompt(query=QUESTION)
    assert (prompt.system, len(prompt.messages), prompt.hits) == ("", 1, ())
    assert chat.snapshot() == 0


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


def test_what_is_remembered_before_the_first_prompt_is_shown_by_it(memory: Memory) -> None:
    chat = memory.chat("monday")
    chat.remember("Ada runs", merge=False)
    chat.remember("Ada reflects", by="reflect", merge=False)
    assert "Ada runs" in frozen(chat)
    assert "Ada reflects" in frozen(chat)


OUTSIDE: dict[str, Callable[[Memory], object]] = {
    "the user, elsewhere": lambda memory: memory.remember("marathons now", "soul", by="user"),
    "another chat": lambda memory: memory.chat("tuesday").remember("marathons now", merge=False),
    "reflection on this chat": lambda memory: memory.chat("monday").remember(
        "marathons now", "profile", by="reflect"
    ),
    "reflection in its name": lambda memory: memory.remember(
        "marathons now", "finding", by="reflect", chat="monday"
    ),
    "an import of this chat": lambda memory: memory.remember(
        "marathons now", "finding", by="import", chat="monday"
    ),
    "a replacement": lambda memory: memory.replace("known marathons", "marathons now"),
    "a retraction": lambda memory: memory.retract("known marathons"),
    "a rollback": lambda memory: memory.rollback("soul", 5),
    "an undo": lambda memory: memory.undo(),
    "a clearing": lambda memory: memory.retract_all(kind="finding"),
    "the tenant": lambda memory: memory.scoped(user="").remember("marathons now", "constraint", by="user"),
    "the same chat of another user": lambda memory: (
        memory.scoped(user="bob").chat("monday").remember("marathons now", merge=False)
    ),
}


AROUND: dict[str, Callable[[Memory], object]] = {
    "messages": lambda memory: memory.chat("monday").append(role="user", content="more about marathons"),
    "a session note": lambda memory: memory.remember("a note", "note", chat="monday", by="reflect"),
    "a plan note": lambda memory: memory.remember("a plan", "note", target="plan"),
    "the use of notes": lambda memory: memory.chat("monday").notes(),
    "the use of a record": lambda memory: [memory.get(one.id) for one in memory.records()],
    "a pad": lambda memory: memory.chat("monday").scratchpad.update({"step": "1"}),
    "a rebuild": lambda memory: memory.verify(repair=True),
    "an archive": lambda memory: memory.chat("monday").archive(),
    "another user": lambda memory: memory.scoped(user="bob").remember("Bob runs", "soul"),
    "another agent": lambda memory: memory.scoped(agent="cook").remember("I cook", "soul"),
    "an ended run": lambda memory: memory.chat("monday").run().end(),
}


@each("write", [*OUTSIDE.values(), *AROUND.values()])
def test_what_others_write_does_not_change_a_prompt(write: Callable[[Memory], object]) -> None:
    memory = fresh()
    memory.remember("Never on Mondays", "constraint", by="user")
    memory.remember("Ada runs", priority=3, merge=False)
    memory.remember("Ada swims", priority=8, merge=False)
    memory.remember("an old note", "note", chat="monday")
    memory.remember("first", "soul")
    first = memory.version()
    memory.remember("second", "soul")
    memory.remember("known marathons", "finding")
    memory.remember("known marathons too", "insight")
    memory.retract("known marathons too")
    chat = memory.chat("monday")
    frozen(chat)
    chat.prompt(query=QUESTION)
    before = chat.prompt(query=QUESTION)
    assert before.tokens["unchanged"] == before.tokens["total"] > 0
    assert before.system.count("Ada") == 2
    assert recalled(chat) == ["known marathons"]
    snapshot, messages = chat.snapshot(), chat.stats().messages
    write(memory)
    assert (chat.prompt().system, recalled(chat), chat.snapshot()) == (
        before.system,
        ["known marathons"],
        snapshot,
    )
    assert chat.prompt(query=QUESTION) == before or chat.stats().messages > messages
    assert memory.at(first).get("soul") is not None


def test_recall_outside_of_a_prompt_knows_the_present(memory: Memory) -> None:
    chat = memory.chat("monday")
    frozen(chat)
    memory.remember("marathons need shoes", "finding")
    assert [hit.text for hit in memory.recall(QUESTION)] == ["marathons need shoes"]


def test_messages_are_recalled_as_of_now(memory: Memory) -> None:
    chat = memory.chat("monday")
    frozen(chat)
    memory.chat("tuesday").append(role="user", content="marathons are long")
    assert [hit.text for hit in chat.prompt(query=QUESTION).hits] == ["marathons are long"]


# How it moves on


FOREGROUND: dict[str, Callable[[Memory], object]] = {
    "chat.remember": lambda memory: memory.chat("monday").remember("Ada swims", merge=False),
    "by the user": lambda memory: memory.chat("monday").remember("Ada swims", by="user", merge=False),
    "by a tool": lambda memory: memory.chat("monday").remember("Ada swims", by="tool", merge=False),
    "memory.remember": lambda memory: memory.remember("Ada swims", chat="monday", merge=False),
    "replace": lambda memory: memory.replace("Ada runs", "Ada swims", chat="monday"),
    "a retraction": lambda memory: memory.retract("Ada runs", chat="monday"),
    "a batch": lambda memory: memory.remember(["Ada swims"], "finding", chat="monday"),
}
ACTING: dict[str, Callable[[Memory], object]] = {
    "remember": lambda memory: memory.remember("Ada swims", merge=False),
    "several": lambda memory: memory.remember(["Ada swims", "Ada rows"], "finding"),
    "replace": lambda memory: memory.replace("Ada runs", "Ada swims"),
    "retract": lambda memory: memory.retract("Ada runs"),
    "clear": lambda memory: memory.retract_all(kind="fact"),
    "undo": lambda memory: memory.undo(),
    "rollback": lambda memory: memory.rollback("soul", 1),
}


@each("acting", [False, True])
@each("write", [*FOREGROUND.values(), *ACTING.values()])
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
    by_itself = acting or write in FOREGROUND.values()
    assert chat.snapshot() == (memory.version() if by_itself else 3)
    assert (frozen(chat) != before) is (
        by_itself and "finding" not in {one.kind for one in memory.changes(limit=1)}
    )
    assert other.snapshot() == 3, "the other chat stays"
    with acting_as(chat="monday", source="reflect"):
        memory.remember("Ada reflects", "insight")
    assert chat.snapshot() == (memory.version() - 1 if by_itself else 3)


def test_a_refused_write_does_not_move_a_chat_on(memory: Memory) -> None:
    chat = memory.chat("monday")
    before = frozen(chat)
    memory.remember("of another chat", merge=False)
    with pytest.raises(ValueError, match="blank"):
        chat.remember("  ")
    with pytest.raises(PermissionError):
        chat.remember("Obey", "constraint")
    assert frozen(chat) == before


def test_refreshing_before_the_first_prompt_freezes(memory: Memory) -> None:
    chat = memory.chat("monday")
    assert chat.refresh() == 0
    memory.remember("new", "soul")
    assert frozen(chat) == ""


def test_a_chat_of_one_agent_does_not_move_that_of_another_user(memory: Memory) -> None:
    mine, theirs = memory.chat("monday"), memory.scoped(user="bob").chat("monday")
    frozen(mine)
    frozen(theirs)
    mine.remember("Ada runs", merge=False)
    assert (mine.snapshot(), theirs.snapshot()) == (1, 0)


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


def test_a_snapshot_survives_reopening(reopen: Callable[[], Memory]) -> None:
    memory = reopen()
    memory.remember("old", "soul")
    before = frozen(memory.chat("monday"))
    memory.close()
    again = reopen()
    again.remember("new", "soul")
    again.close()
    last = reopen()
    assert last.chat("monday").snapshot() == 1
    assert frozen(last.chat("monday")) == before


@pytest.mark.slow
def test_another_process_shows_the_same_and_does_not_move_it(
    shared_location: str, reopen: Callable[[], Memory]
) -> None:
    memory = reopen()
    memory.remember("old", "soul")
    before = frozen(memory.chat("monday"))
    script = """
import sys
from holdfast import Memory
with Memory(sys.argv[1], user="ada") as memory:
    memory.remember("new", "soul")
    memory.chat("tuesday").remember("of another chat", merge=False)
    print(memory.chat("monday").prompt().system)
"""
    assert run(script, shared_location) == before + "\n"
    assert frozen(memory.chat("monday")) == before


# A property: whatever happens, the frozen part changes only when the chat itself writes or refreshes


# What a chat writes and what its prompts show are one transaction


def _undone(chat: Chat) -> object:
    with acting_as(chat=chat.id):
        return memory_of(chat).undo()


WRITES: dict[str, Callable[[Chat], object]] = {
    "remember": lambda chat: chat.remember("Ada grows tulips"),
    "replace": lambda chat: memory_of(chat).replace("roses", "Ada grows tulips", chat="monday"),
    "retract": lambda chat: memory_of(chat).retract("roses", chat="monday"),
    "undo": _undone,
}


class Stopped(BaseException):
    """The program ends, at a moment of which the memory knows nothing."""


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("moment", range(1, 4))
def test_what_a_chat_wrote_is_shown_wherever_it_was_stopped(
    location: str, write: Callable[[Chat], object], moment: int
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
        with suppress(Stopped):
            write(chat)
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
