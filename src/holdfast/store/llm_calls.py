"""What models cost: a row for each call, written before it is asked, so that a limit holds also while others ask."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from holdfast.store.database import repeated

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Database, Row

_ASK = """
    INSERT INTO spend (space, id, at, purpose, model, agent, chat, job, prompt_tokens, answer_tokens, counted, micros, outcome)
    VALUES (:space, :id, :at, :purpose, :model, :agent, :chat, :job, :prompt_tokens, :answer_tokens, 0, 0, 'asked')"""
_ANSWER = """
    UPDATE spend SET prompt_tokens = :prompt_tokens, answer_tokens = :answer_tokens, counted = :counted, micros = :micros,
        outcome = :outcome WHERE space = :space AND id = :id RETURNING job"""
_CHARGE = """
    UPDATE jobs SET calls = calls + 1, prompt_tokens = prompt_tokens + :prompt_tokens,
        answer_tokens = answer_tokens + :answer_tokens WHERE space = :space AND id = :job"""


class Asked(NamedTuple):
    """A call as it is noted before it is asked; the tokens of the answer are what it may take."""

    purpose: str
    model: str
    agent: str
    chat: str
    job: str
    prompt_tokens: int
    answer_tokens: int


class Bound(NamedTuple):
    """At most so many calls and tokens since a time; of one purpose, or of all where that is ""."""

    purpose: str
    since: int
    calls: int | None
    tokens: int | None


@repeated
def ask(db: Database, space: str, now: int, call: Asked, bounds: Sequence[Bound]) -> str | Bound:
    """Note a call that is about to be made and return its id; or the bound that does not allow it, and nothing is noted."""
    identity = f"call_{now:015x}{random.getrandbits(32):08x}"
    with db.writing() as tx:
        tx.lock(space)
        for bound in bounds:
            if _is_over(tx, space, call, bound):
                return bound
        tx.all(_ASK, space=space, id=identity, at=now, **call._asdict())
    return identity


def _is_over(tx: Connection, space: str, call: Asked, bound: Bound) -> bool:
    calls, tokens = tx.all(
        "SELECT count(*), coalesce(sum(prompt_tokens + answer_tokens), 0) FROM spend "
        "WHERE space = :space AND at > :since AND (:purpose = '' OR purpose = :purpose)",
        space=space,
        since=bound.since,
        purpose=bound.purpose,
    )[0]
    wanted = call.prompt_tokens + call.answer_tokens
    return (bound.calls is not None and calls >= bound.calls) or (
        bound.tokens is not None and tokens + wanted > bound.tokens
    )


@repeated
def answer(
    db: Database,
    space: str,
    identity: str,
    *,
    prompt_tokens: int,
    answer_tokens: int,
    counted: bool,
    micros: int,
    outcome: str,
) -> None:
    """Note what a call has cost and how it ended, and charge the job that it was made for."""
    with db.writing() as tx:
        tx.lock(space)  # before its rows, as everybody does
        rows = tx.all(
            _ANSWER,
            space=space,
            id=identity,
            prompt_tokens=prompt_tokens,
            answer_tokens=answer_tokens,
            counted=int(counted),
            micros=micros,
            outcome=outcome,
        )
        for (job,) in rows:
            if job:
                tx.all(
                    _CHARGE, space=space, job=job, prompt_tokens=prompt_tokens, answer_tokens=answer_tokens
                )


def oldest(db: Database, space: str, since: int, purpose: str) -> int | None:
    """Give the time of the oldest call since a time, of one purpose or of all where that is ""; None for none."""
    with db.reading() as connection:
        rows = connection.all(
            "SELECT min(at) FROM spend WHERE space = :space AND at > :since AND (:purpose = '' OR purpose = :purpose)",
            space=space,
            since=since,
            purpose=purpose,
        )
    return None if rows[0][0] is None else int(rows[0][0])


def totals(db: Database, space: str, since: int) -> list[Row]:
    """Sum up by purpose, model and outcome: calls, tokens of prompts and answers, microseconds, calls counted by providers."""
    with db.reading() as connection:
        return connection.all(
            """SELECT purpose, model, outcome, count(*), sum(prompt_tokens), sum(answer_tokens), sum(micros), sum(counted)
            FROM spend WHERE space = :space AND at >= :since GROUP BY purpose, model, outcome
            ORDER BY purpose, model, outcome""",
            space=space,
            since=since,
        )
