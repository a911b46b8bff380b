"""What one answer speaks of is read at once: others may append and compact between any two of its queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from handles import memory_of
from holdfast import Chat, Memory, Window
from holdfast.prompt.window import Lossless

BUDGET = 1_000


def talk(chat: Chat, turns: int) -> None:
    """Append some turns."""
    length = chat.stats().messages
    chat.append(
        [
            {
                "role": "assistant" if n % 2 else "user",
                "content": f"turn {length + n} of the tulip harvest " * 6,
            }
            for n in range(turns)
        ]
    )


def check_covers(window: Window, least: int) -> None:
    """Check that all messages up to the newest, number `least` or later, are accounted for once."""
    spans = [(one.first, one.last) for one in window.summaries]
    spans += [(one.first, one.last) for one in window.omitted]
    spans += [(message.seq, message.seq) for message in window.messages]
    seen = 0
    for first, last in sorted(spans):
        assert first == seen + 1
        seen = last
    assert window.messages
    assert window.messages[-1].seq == seen >= least


@pytest.fixture
def full_chat(shared_location: str) -> Iterator[tuple[Memory, Chat]]:
    """Open two handles on one database, of which the second has a chat with summaries."""
    with Memory(shared_location, user="ada") as other, Memory(shared_location, user="ada") as memory:
        chat = memory.chat("monday")
        talk(chat, 40)
        chat.compact(full=True, budget=600)
        memory.remember("Ada grows tulips", "finding")
        assert chat.stats().summarised
        memory.recall("tulip")
        yield other, chat


@contextmanager
def between(
    chat: Chat, place: int, act: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Let something happen before the query number `place`, counted from here."""
    database = chat._runtime.database
    reading, passed = database.reading, 0

    def counted() -> object:
        nonlocal passed
        passed += 1
        if passed == place:
            act()
        return reading()

    with monkeypatch.context() as patch:
        patch.setattr(database, "reading", counted)
        yield


ANSWERS: dict[str, Callable[[Chat], Window]] = {
    "a window": lambda chat: chat.window(BUDGET),
    "a window of all": lambda chat: chat.window(policy=Lossless(10**6)),
    "a prompt": lambda chat: chat.prompt(BUDGET).window,
    "a prompt that recalls": lambda chat: chat.prompt(BUDGET, "tulip harvest").window,
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_nothing_is_lost_between_two_queries(
    full_chat: tuple[Memory, Chat], answer: Callable[[Chat], Window], monkeypatch: pytest.MonkeyPatch
) -> None:
    other, chat = full_chat

    def go_on() -> None:
        talk(other.chat("monday"), 30)
        other.chat("monday").compact(full=True, budget=600)

    for place in range(1, 13):
        least = chat.stats().messages
        with between(chat, place, go_on, monkeypatch):
            check_covers(answer(chat), least)


def test_what_is_said_during_a_prompt_is_not_recalled_by_it(
    full_chat: tuple[Memory, Chat], monkeypatch: pytest.MonkeyPatch
) -> None:
    other, chat = full_chat
    for place in range(1, 13):
        length = chat.stats().messages
        with between(chat, place, lambda: talk(other.chat("monday"), 2), monkeypatch):
            prompt = chat.prompt(BUDGET, "tulip harvest")
        newest = prompt.window.messages[-1].seq
        assert newest in {length, length + 2}
        assert all(hit.seq < prompt.window.messages[0].seq for hit in prompt.hits if hit.source == "message")
        with between(chat, place, lambda: talk(other.chat("monday"), 2), monkeypatch):
            assert memory_of(chat).verify().problems == ()


def test_whether_compaction_is_needed_is_decided_at_once(
    full_chat: tuple[Memory, Chat], monkeypatch: pytest.MonkeyPatch
) -> None:
    other, chat = full_chat
    for place in range(3, 6):  # the first is that of the read itself, or nothing is read before it
        talk(chat, 20)
        with between(chat, place, lambda: other.chat("monday").compact(full=True, budget=600), monkeypatch):
            assert chat.needs_compaction(600)
        other.chat("monday").compact(full=True, budget=600)
        assert not chat.needs_compaction(600)
