"""When something was said, and when it was stored."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from holdfast import Memory
from learning_scripts import DECIDED, Clock

pytestmark = pytest.mark.usefixtures("clock")

MARCH = datetime(2024, 3, 5, 9, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def talked(memory: Memory) -> Memory:
    """A session of March 2024, stored years later."""
    memory.chat("shop").append(
        [
            {"role": "user", "content": "Which tea shall we sell?", "at": MARCH.isoformat()},
            {"role": "user", "content": DECIDED, "at": (MARCH + DAY).isoformat()},
        ]
    )
    return memory


def test_what_is_learned_has_the_time_of_its_session(talked: Memory, clock: Clock) -> None:
    (found,) = talked.chat("shop").extract().records
    assert (found.at, found.created) == (MARCH + DAY, clock())
    assert [hit.at for hit in talked.recall(DECIDED, sources=["record"])] == [MARCH + DAY]
    within = talked.recall(DECIDED, sources=["record"], since=MARCH, until=MARCH + 2 * DAY)
    assert [hit.id for hit in within] == [found.id]
    assert talked.recall(DECIDED, sources=["record"], since=MARCH + 2 * DAY) == []


def test_an_episode_has_the_time_of_its_session(talked: Memory, clock: Clock) -> None:
    chat = talked.chat("shop")
    for role in ("assistant", "user", "assistant", "user", "assistant"):
        chat.append(role=role, content="Green tea it is, then.", at=MARCH + 2 * DAY)
    clock.move(hours=2)
    talked.learning.work()
    (episode,) = talked.records(kind="episode")
    assert (episode.at, episode.created) == (MARCH + 2 * DAY, clock())


def test_a_new_text_is_said_now_and_its_return_when_it_was_said(talked: Memory, clock: Clock) -> None:
    record = talked.remember("We sell green tea", "finding", chat="shop", messages=2)
    clock.move(hours=1)
    replaced = talked.replace(record.id, "We sell black tea")
    assert (replaced.at, replaced.created) == (clock(), clock())
    clock.move(hours=1)
    (undone,) = talked.undo()
    assert (undone.at, undone.created) == (MARCH + DAY, clock())
    clock.move(hours=1)
    gone = talked.retract(record.id)
    assert (gone.at, gone.created) == (MARCH + DAY, clock())


def test_what_is_said_again_was_said_last_when_it_was_said_last(talked: Memory) -> None:
    talked.remember("We sell green tea", chat="shop", messages=2)
    talked.chat("bar").append(role="user", content="We sell green tea", at=MARCH)
    again = talked.remember("We sell green tea", chat="bar", messages=1)
    assert (again.evidence, again.at) == (2, MARCH + DAY)
