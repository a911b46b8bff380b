"""The meter: what a call without an answer counts; and no failure to note one hides why there is none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast import Closed, ModelFailed
from holdfast.errors import Reason
from holdfast.events import Events
from holdfast.llm.adapters import resolve
from holdfast.llm.llm_request import LLMRequest
from holdfast.llm.meter import Meter
from holdfast.store import llm_calls
from holdfast.store.connect import open_database
from holdfast.store.database import Database
from holdfast.types import Scope

ASKED = LLMRequest("observe", "What is worth knowing?", None, "observe v1", 500)
PROMPT = len(ASKED.prompt)


@pytest.fixture
def database() -> Iterator[Database]:
    opened = open_database(":memory:")
    yield opened
    opened.close()


def meter(database: Database) -> Meter:
    return Meter(database, Scope(user="ada"), len, lambda: 1, {}, Events())


def noted(database: Database) -> tuple[str, int, int]:
    """Give how the one call that was noted ended, and the tokens of its prompt and of its answer."""
    ((_, _, outcome, _, prompt_tokens, answer_tokens, *_),) = llm_calls.totals(
        database, Scope(user="ada").space, 0
    )
    return str(outcome), int(prompt_tokens), int(answer_tokens)


@pytest.mark.parametrize(
    ("error", "outcome", "answer_tokens"),
    [
        (KeyboardInterrupt(), "interrupted", 500),
        (TimeoutError(), "timeout", 500),
        (UnicodeDecodeError("utf-8", b"x", 0, 1, "no text"), "answer", 500),
        (PermissionError(), "error", 0),
        (ModelFailed("It failed.", "Try again.", reason="quota"), "quota", 0),
        (ModelFailed("It failed.", "Try again.", reason="timeout"), "timeout", 500),
    ],
)
def test_a_call_that_may_have_to_be_paid_counts_what_it_was_allowed(
    database: Database, error: BaseException, outcome: Reason, answer_tokens: int
) -> None:
    def fail(_: str) -> str:
        raise error

    used = meter(database)
    with pytest.raises((ModelFailed, KeyboardInterrupt)):
        used.ask(resolve(fail), ASKED, None)
    assert noted(database) == (outcome, PROMPT, answer_tokens)
    ((call),) = used.calls
    assert (call.outcome, call.prompt_tokens, call.answer_tokens) == (outcome, PROMPT, answer_tokens)


def test_an_answer_counts_what_it_takes(database: Database) -> None:
    assert meter(database).ask(resolve(str.upper), ASKED, None) == ASKED.prompt.upper()
    assert noted(database) == ("answered", PROMPT, PROMPT)


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt()])
def test_the_error_of_a_model_is_raised_also_where_it_cannot_be_noted(
    database: Database, error: BaseException
) -> None:
    def fail(_: str) -> str:
        database.close()
        raise error

    used = meter(database)
    with pytest.raises((ModelFailed, KeyboardInterrupt)) as caught:
        used.ask(resolve(fail), ASKED, None)
    raised = caught.value
    assert raised is error or raised.__cause__ is error
    assert isinstance(raised.__context__, Closed)
    assert "could not be recorded" in raised.__notes__[0]
    assert used.calls == []
