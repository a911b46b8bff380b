"""The meter: every call of a model goes through it, is noted before and after, and is not made beyond a limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import Closed, ModelFailed, Unavailable
from holdfast.events import Call, Event
from holdfast.logs import debug
from holdfast.settings import ALL, Limit
from holdfast.store import llm_calls
from holdfast.store.llm_calls import Asked, Bound

if TYPE_CHECKING:
    from holdfast.events import Events
    from holdfast.llm.llm_request import LLMRequest
    from holdfast.llm.model import Answer, Model
    from holdfast.store.database import Database
    from holdfast.text.tokens import CountTokens
    from holdfast.types import Scope

HOUR = 3_600_000_000  # microseconds
ANSWERED = "answered"
_INTERRUPTED = "interrupted"
_MAY_BE_PAID = (_INTERRUPTED, "timeout", "answer")  # an answer was made, or was being made, for all we know


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
        self, model: Model, question: LLMRequest, patience: float | None, *, chat: str = "", job: str = ""
    ) -> Answer:
        """Ask a model and wait for its answer.

        Raises:
            ModelFailed: the model failed, or a limit does not allow the call (its reason is "limit").

        """
        # Only for those who have a model.
        from holdfast.llm.model import complete

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
        self._check_size(asked, self._bounds(purpose, now))
        noted = llm_calls.ask(self.database, self.scope.space, now, asked, self._bounds(purpose, now))
        if isinstance(noted, Bound):
            raise self._refused(noted)
        return Open(noted, asked, time.monotonic())

    def end(self, call: Open, result: Answer | BaseException) -> None:
        """Note how a call ended: what it has cost by the account of the provider, or else by ours.

        An answer that nobody waited for, or that could not be read, may have to be paid: it counts with all the tokens that
        it was allowed. One that was refused or failed otherwise counts none.

        Raises:
            Closed: the memory was closed meanwhile; nothing was noted.
            Unavailable: the database cannot be written; nothing was noted.
            BaseException: `result`, in place of these, if it is an error.

        """
        asked, seconds = call.asked, time.monotonic() - call.began
        prompt_tokens, counted = asked.prompt_tokens, False
        if isinstance(result, str):
            outcome = ANSWERED
            counted = result.prompt_tokens is not None and result.answer_tokens is not None
            prompt_tokens = asked.prompt_tokens if result.prompt_tokens is None else result.prompt_tokens
            answer_tokens = self.count(result) if result.answer_tokens is None else result.answer_tokens
        else:
            outcome = result.reason if isinstance(result, ModelFailed) else _INTERRUPTED
            answer_tokens = asked.answer_tokens if outcome in _MAY_BE_PAID else 0
        try:
            llm_calls.answer(
                self.database,
                self.scope.space,
                call.id,
                prompt_tokens=prompt_tokens,
                answer_tokens=answer_tokens,
                counted=counted,
                micros=int(seconds * 1_000_000),
                outcome=outcome,
            )
        except (Closed, Unavailable) as failure:
            if isinstance(result, str):
                raise
            result.add_note(f"How the call ended could not be noted: {failure.what}")
            raise result from (result.__cause__ or failure)
        told = Call(
            asked.purpose, asked.model, prompt_tokens, answer_tokens, seconds, outcome, asked.chat, asked.job
        )
        self.calls.append(told)
        debug(
            "call of the model %s for %s: %d + %d tokens, %s in %.1f ms",
            told.model,
            told.purpose,
            told.prompt_tokens,
            told.answer_tokens,
            told.outcome,
            seconds * 1_000,
        )
        self.events.tell(Event("spent", self.scope, call=told, chat=asked.chat))

    @staticmethod
    def _check_size(asked: Asked, bounds: Sequence[Bound]) -> None:
        """Raise ModelFailed if a call alone takes more than is allowed in an hour: waiting would not help it."""
        wanted = asked.prompt_tokens + asked.answer_tokens
        for bound in bounds:
            if bound.tokens is not None and wanted > bound.tokens:
                raise ModelFailed(
                    f"A prompt and its answer take {wanted:,} tokens, and your limit of {bound.tokens:,} tokens an hour "
                    "never allows it.",
                    "Raise the limit, or let prompts be smaller: Learning(limits=…, tokens=…).",
                    reason="limit",
                )

    def _bounds(self, purpose: str, now: int) -> list[Bound]:
        return [
            Bound(name, now - HOUR, limit.calls, limit.tokens)
            for name, limit in self.limits.items()
            if name in (ALL, purpose)
        ]

    def _refused(self, bound: Bound) -> ModelFailed:
        allowed = " and ".join(
            f"{number:,} {what}"
            for number, what in (
                (bound.calls, "call" if bound.calls == 1 else "calls"),
                (bound.tokens, "tokens"),
            )
            if number is not None
        )
        what = f"jobs of the kind {bound.purpose!r}" if bound.purpose else "models"
        return ModelFailed(
            f"Your limit of {allowed} an hour for {what} does not allow another call.",
            "Wait, or raise it: Memory(learning=Learning(limits=…)).",
            reason="limit",
        )

    def free_at(self, purpose: str) -> int:
        """Give the time at which the oldest call that counts for a purpose counts no more; in an hour, if there is none."""
        now = self.now()
        times = [
            llm_calls.oldest(self.database, self.scope.space, bound.since, bound.purpose)
            for bound in self._bounds(purpose, now)
        ]
        return max((now if time is None else time) + HOUR for time in times or [None])
