"""What is learned without a model: sentences that decide, but no report as a whole."""

from __future__ import annotations

import pytest

from holdfast import Memory
from learning_scripts import (
    DECIDED,
    SESSION,
    learned,
    say,
)

pytestmark = pytest.mark.usefixtures("clock")


def test_nothing_is_learned_from_nothing(quick: Memory) -> None:
    chat = quick.chat("shop")
    say(chat, ("system", "You are a clerk."), ("user", "Hi!"))
    assert chat.extract().records == ()
    assert learned(quick) == []


@pytest.mark.parametrize(
    ("sentence", "learns"),
    [
        (DECIDED, True),
        ("It is important that the tea is never stored beside the coffee in the cellar.", True),
        ("The conclusion is that green tea sells best in the second week of each month.", True),
        ("We agreed to pay the carpenter from Braga in three rates until October.", True),
        ("The carpenter disagreed with the colour of the till, and so did all of his sons.", False),
        ("The colour of the till is unimportant to nearly everybody who buys tea with us.", False),
        ("We decided it.", False),
        ("Have we decided which of the carpenters from Braga will build the new till?", False),
        ("The nightly backup of the shop takes forty minutes, and is kept in Frankfurt.", False),
    ],
)
def test_sentences_that_decide_are_insights(quick: Memory, sentence: str, *, learns: bool) -> None:
    say(quick.chat("shop"), ("user", f"{sentence} What else is there?"))
    found = quick.chat("shop").extract()
    assert [(record.kind, record.text, record.messages) for record in found.records] == (
        [("insight", sentence, (1, 1))] if learns else []
    )


def test_what_is_very_long_is_no_statement(quick: Memory) -> None:
    say(quick.chat("shop"), ("user", f"We decided to sell {'green and black and white ' * 150}tea."))
    assert quick.chat("shop").extract().records == ()


@pytest.mark.parametrize(
    ("closing", "learns"),
    [
        (SESSION[5], 0),
        ("I wrote docs/migration.md.", 0),
        (f"We decided to wait for the lawyers, as I said. {DECIDED}", 2),  # two decisions, which say it all
    ],
)
def test_of_a_report_only_what_it_concludes_is_kept(quick: Memory, closing: str, learns: int) -> None:
    say(quick.chat("shop"), ("user", "How far are you?"), ("assistant", closing))
    found = quick.chat("shop").extract()
    assert len(found.records) == learns, "each decision once, and no report as a whole"
    assert {record.meta["learned"] for record in found.records} <= {"statements"}


def test_a_later_decision_supersedes_an_earlier_one_whatever_its_reason(quick: Memory) -> None:
    chat = quick.chat("shop")
    say(
        chat,
        ("user", "Let's go with Redis for the queue, because Postgres was too slow."),
        ("assistant", "OK."),
    )
    chat.extract()
    say(
        chat, ("user", "Actually, let's switch to NATS for the queue instead of Redis."), ("assistant", "OK.")
    )
    chat.extract()
    (decision,) = quick.records(kind="insight")
    assert ("NATS" in decision.text, decision.action) == (True, "update")
