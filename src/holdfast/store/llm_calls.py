"""Calls of models and their costs; each has a row, written before it, so that limits hold in parallel."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from holdfast.store import table_rows
from holdfast.store.database import first_value, retry_transaction

if TYPE_CHECKING:
    from holdfast.events import Call
    from holdfast.store.database import Connection, Database, Reader, Row, Value

_SETTLE = """
    UPDATE spend SET prompt_tokens = :prompt_tokens, answer_tokens = :answer_tokens, counted = :counted,
        micros = :micros, outcome = :outcome
    WHERE space = :space AND id = :id RETURNING job"""
_CHARGE = """
    UPDATE jobs SET calls = calls + 1, prompt_tokens = prompt_tokens + :prompt_tokens,
        answer_tokens = answer_tokens + :answer_tokens
    WHERE space = :space AND id = :job"""
# All purposes together are those of language models.
_SINCE = """
    FROM spend WHERE space = :space AND at > :since
    AND (purpose = :purpose OR (:purpose = '' AND purpose NOT IN ('embed', 'recall')))"""
_TOTALS = """
    SELECT purpose, model, outcome,
        count(*), sum(prompt_tokens), sum(answer_tokens), sum(micros), sum(counted)
    FROM spend WHERE space = :space AND at >= :since GROUP BY purpose, model, outcome
    ORDER BY purpose, model, outcome"""


class PlannedCall(NamedTuple):
    """A call that is about to be made; `answer_tokens` is the most that the answer may take."""

    purpose: str
    model: str
    agent: str
    chat: str
    job: str
    prompt_tokens: int
    answer_tokens: int


class CallLimit(NamedTuple):
    """The most calls and tokens since a time, for one purpose, or for all ("")."""

    purpose: str
    since: int
    calls: int | None
    tokens: int | None


@retry_transaction
def reserve(
    db: Database, space: str, now: int, call: PlannedCall, limits: Sequence[CallLimit]
) -> str | CallLimit:
    """Store a call before it is made and return its id; or store nothing and return the limit it exceeds."""
    identity = f"call_{now:015x}{random.getrandbits(32):08x}"
    with db.writing_to(space) as tx:
        for limit in limits:
            if _exceeds(tx, space, call, limit):
                return limit
        row = {"space": space, "id": identity, "at": now, "counted": 0, "micros": 0, "outcome": "asked"}
        table_rows.add(tx, "spend", row | call._asdict())
    return identity


def _exceeds(tx: Connection, space: str, call: PlannedCall, limit: CallLimit) -> bool:
    sql = f"SELECT count(*), coalesce(sum(prompt_tokens + answer_tokens), 0) {_SINCE}"
    calls, tokens = tx.all(sql, space=space, since=limit.since, purpose=limit.purpose)[0]
    total = tokens + call.prompt_tokens + call.answer_tokens
    too_many = limit.calls is not None and calls >= limit.calls
    return too_many or (limit.tokens is not None and total > limit.tokens)


@retry_transaction
def settle(db: Database, space: str, identity: str, call: Call, *, counted: bool) -> None:
    """Store the costs and the outcome of a call, and charge its job.

    `counted` is whether the provider counted the tokens.
    """
    tokens: dict[str, Value] = {"prompt_tokens": call.prompt_tokens, "answer_tokens": call.answer_tokens}
    rest: dict[str, Value] = {"counted": int(counted), "micros": int(call.seconds * 1_000_000)}
    rest["outcome"] = call.outcome
    with db.writing_to(space) as tx:
        # Before its rows, as everybody does.
        for (job,) in tx.all(_SETTLE, space=space, id=identity, **tokens, **rest):
            if job:
                tx.all(_CHARGE, space=space, job=job, **tokens)


def oldest(db: Reader, space: str, since: int, purpose: str) -> int | None:
    """Return the time of the oldest call since a time, of one purpose or of all (""); None for none."""
    return first_value(db, int, f"SELECT min(at) {_SINCE}", space=space, since=since, purpose=purpose)


def totals(db: Reader, space: str, since: int) -> list[Row]:
    """Return sums by purpose, model and outcome: calls, prompt tokens, answer tokens, micros, counted."""
    return db.all(_TOTALS, space=space, since=since)
