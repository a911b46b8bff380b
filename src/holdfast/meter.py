"""The meter: every call of a model goes through it, is noted before and after, and is not made beyond a limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import ModelFailed
from holdfast.events import Call, Event
from holdfast.learn.policy import ALL, Limit
from holdfast.store import spend
from holdfast.store.spend import Asked, Bound

if TYPE_CHECKING:
    from holdfast.events import Events
    from holdfast.learn.question import Question
    from holdfast.llm import Answer, Model
    from holdfast.store.database import Database
    from holdfast.text.tokens import CountTokens
    from holdfast.types import Scope

HOUR = 3_600_000_000  # microseconds
ANSWERED = "answered"


class Open(NamedTuple):
    """A call that was noted and has not ended."""

    id: str
    asked: Asked
    began: float


@dataclass(frozen=True, slots=True)
class Meter:
    """Note what models are asked for a scope: in the database, and in `calls`."""

    database: Database
    scope: Scope
    count: CountTokens
    now: Callable[[], int]
    limits: Mapping[str, Limit]
    events: Events
    calls: list[Call] = field(default_factory=list)  # those that have ended

    def ask(
        self, model: Model, question: Question, patience: float | None, *, chat: str = "", job: str = ""
    ) -> Answer:
        """Ask a model and wait for its answer.

        Raises:
            ModelFailed: the model failed, or a limit does not allow the call (its reason is "limit").

        """
        from holdfast.llm import complete  # noqa: PLC0415 - only for those who have a model

        call = self.begin(
            model, question.purpose, question.prompt, question.answer_tokens, chat=chat, job=job
        )
        try:
            answer = complete(model, question.prompt, patience, schema=question.schema)
        except BaseException as error:
            self.end(call, error)
            raise
        self.end(call, answer)
        return answer

    def begin(
        self, model: Model, purpose: str, prompt: str, answer_tokens: int, *, chat: str = "", job: str = ""
    ) -> Open:
        """Note a call before it is made: with the tokens of its prompt and those that the answer may take.

        Raises:
            ModelFailed: a limit does not allow it (its reason is "limit"); nothing was noted.

        """
        asked = Asked(purpose, model.name, self.scope.agent, chat, job, self.count(prompt), answer_tokens)
        now = self.now()
        noted = spend.ask(self.database, self.scope.space, now, asked, self._bounds(purpose, now))
        if isinstance(noted, Bound):
            raise self._refused(noted)
        return Open(noted, asked, time.monotonic())

    def end(self, call: Open, result: Answer | BaseException) -> None:
        """Note how a call ended: what it has cost by the account of the provider, or else by ours."""
        asked, seconds = call.asked, time.monotonic() - call.began
        prompt_tokens, answer_tokens, counted = asked.prompt_tokens, 0, False
        if isinstance(result, str):
            outcome = ANSWERED
            counted = result.prompt_tokens is not None and result.answer_tokens is not None
            prompt_tokens = asked.prompt_tokens if result.prompt_tokens is None else result.prompt_tokens
            answer_tokens = self.count(result) if result.answer_tokens is None else result.answer_tokens
        else:
            outcome = result.reason if isinstance(result, ModelFailed) else "interrupted"
        spend.answer(
            self.database,
            self.scope.space,
            call.id,
            prompt_tokens=prompt_tokens,
            answer_tokens=answer_tokens,
            counted=counted,
            micros=int(seconds * 1_000_000),
            outcome=outcome,
        )
        told = Call(
            asked.purpose, asked.model, prompt_tokens, answer_tokens, seconds, outcome, asked.chat, asked.job
        )
        self.calls.append(told)
        self.events.tell(Event("spent", self.scope, call=told, chat=asked.chat))

    def _bounds(self, purpose: str, now: int) -> list[Bound]:
        return [
            Bound(name, now - HOUR, limit.calls, limit.tokens)
            for name, limit in self.limits.items()
            if name in (ALL, purpose)
        ]

    def _refused(self, bound: Bound) -> ModelFailed:
        allowed = " and ".join(
            f"{number:,} {what}"
            for number, what in ((bound.calls, "calls"), (bound.tokens, "tokens"))
            if number is not None
        )
        what = f"jobs of the kind {bound.purpose!r}" if bound.purpose else "models"
        return ModelFailed(
            f"Your limit of {allowed} an hour for {what} does not allow another call.",
            "Wait, or raise it: Memory(learning=Learning(limits=…)).",
            reason="limit",
        )

    def free_at(self) -> int:
        """Give the time at which the oldest call of the last hour counts no more; in an hour, if there is none."""
        now = self.now()
        oldest = spend.oldest(self.database, self.scope.space, now - HOUR)
        return (now if oldest is None else oldest) + HOUR
