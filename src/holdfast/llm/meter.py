"""The meter: every call of a model is recorded before and after it is made, and refused beyond a limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import Closed, ModelFailed, Unavailable
from holdfast.events import Call, Event, debug
from holdfast.settings import ALL, OF_EMBEDDERS, Limit
from holdfast.store import llm_calls
from holdfast.store.llm_calls import CallLimit, PlannedCall

if TYPE_CHECKING:
    from holdfast.events import Events
    from holdfast.llm.llm_request import LLMRequest
    from holdfast.llm.model import Answer, Model
    from holdfast.store.database import Database
    from holdfast.text.tokens import CountTokens
    from holdfast.types import Scope

# Microseconds.
HOUR = 3_600_000_000
ANSWERED = "answered"
_INTERRUPTED = "interrupted"
# An answer was made, or was being made, for all we know.
_MAY_BE_PAID = (_INTERRUPTED, "timeout", "answer")


class OpenCall(NamedTuple):
    """A call that was recorded and has not ended."""

    id: str
    planned: PlannedCall
    began: float


@dataclass(frozen=True, slots=True)
class Meter:
    """The record of the calls of models for a scope: in the database, and the ended ones in `calls`."""

    database: Database
    scope: Scope
    count: CountTokens
    now: Callable[[], int]
    limits: Mapping[str, Limit]
    events: Events
    calls: list[Call] = field(default_factory=list)

    def ask(
        self, model: Model, question: LLMRequest, patience: float | None, *, chat: str = "", job: str = ""
    ) -> Answer:
        """Return the answer of a model.

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
    ) -> OpenCall:
        """Record a call before it is made, with the tokens of its prompt and the most of its answer.

        Raises:
            ModelFailed: a limit does not allow it (its reason is "limit"); nothing was recorded.

        """
        planned = PlannedCall(
            purpose, model.name, self.scope.agent, chat, job, self.count(prompt), answer_tokens
        )
        now = self.now()
        bounds = self._bounds(purpose, now)
        self._check_size(planned, bounds)
        noted = llm_calls.reserve(self.database, self.scope.space, now, planned, bounds)
        if isinstance(noted, CallLimit):
            raise self._refusal(noted)
        return OpenCall(noted, planned, time.monotonic())

    def end(self, call: OpenCall, result: Answer | BaseException) -> None:
        """Record how a call ended, with its tokens as the provider counted them, or else as we do.

        An answer that was not waited for, or that could not be read, may have to be paid: it counts with all
        the tokens that it was allowed. Other failures count none.

        Raises:
            Closed: the memory was closed meanwhile; nothing was recorded.
            Unavailable: the database cannot be written; nothing was recorded.
            BaseException: `result`, in place of these, if it is an error.

        """
        planned, seconds = call.planned, time.monotonic() - call.began
        outcome, prompt_tokens, answer_tokens, counted = self._outcome(planned, result)
        of, by, chat, job = planned.purpose, planned.model, planned.chat, planned.job
        ended = Call(of, by, prompt_tokens, answer_tokens, seconds, outcome, chat, job)
        try:
            llm_calls.settle(self.database, self.scope.space, call.id, ended, counted=counted)
        except (Closed, Unavailable) as failure:
            if isinstance(result, str):
                raise
            result.add_note(f"The end of the call could not be recorded: {failure.what}")
            raise result from (result.__cause__ or failure)
        self.calls.append(ended)
        what = (by, of, prompt_tokens, answer_tokens, outcome, seconds * 1_000)
        debug("call of the model %s for %s: %d + %d tokens, %s in %.1f ms", *what)
        self.events.tell(Event("spent", self.scope, call=ended, chat=planned.chat))

    def _outcome(self, planned: PlannedCall, result: Answer | BaseException) -> tuple[str, int, int, bool]:
        """Return how a call ended, its tokens, and whether the provider counted them."""
        if isinstance(result, str):
            prompt_tokens = planned.prompt_tokens if result.prompt_tokens is None else result.prompt_tokens
            answer_tokens = self.count(result) if result.answer_tokens is None else result.answer_tokens
            counted = None not in (result.prompt_tokens, result.answer_tokens)
            return ANSWERED, prompt_tokens, answer_tokens, counted
        outcome = result.reason if isinstance(result, ModelFailed) else _INTERRUPTED
        return outcome, planned.prompt_tokens, planned.answer_tokens if outcome in _MAY_BE_PAID else 0, False

    @staticmethod
    def _check_size(planned: PlannedCall, bounds: Sequence[CallLimit]) -> None:
        """Raise ModelFailed if a call alone takes more than is allowed in an hour: waiting would not help."""
        wanted = planned.prompt_tokens + planned.answer_tokens
        for bound in bounds:
            if bound.tokens is not None and wanted > bound.tokens:
                raise ModelFailed(
                    f"A prompt and its answer take {wanted:,} tokens, "
                    f"and your limit of {bound.tokens:,} tokens an hour never allows it.",
                    "Raise the limit, or let prompts be smaller: Learning(limits=…, tokens=…).",
                    reason="limit",
                )

    def _bounds(self, purpose: str, now: int) -> list[CallLimit]:
        return [
            CallLimit(name, now - HOUR, limit.calls, limit.tokens)
            for name, limit in self.limits.items()
            if name == purpose or (name == ALL and purpose not in OF_EMBEDDERS)
        ]

    def _refusal(self, bound: CallLimit) -> ModelFailed:
        numbers = (bound.calls, "call" if bound.calls == 1 else "calls"), (bound.tokens, "tokens")
        allowed = " and ".join(f"{number:,} {what}" for number, what in numbers if number is not None)
        what = f"jobs of the kind {bound.purpose!r}" if bound.purpose else "models"
        return ModelFailed(
            f"Your limit of {allowed} an hour for {what} does not allow another call.",
            "Wait, or raise it: Memory(learning=Learning(limits=…)).",
            reason="limit",
        )

    def spent(self) -> tuple[int, int, int]:
        """Return the number of the calls that ended, and the tokens of their prompts and of their answers."""
        prompts = sum(call.prompt_tokens for call in self.calls)
        answers = sum(call.answer_tokens for call in self.calls)
        return len(self.calls), prompts, answers

    def free_at(self, purpose: str) -> int:
        """Return when the oldest call that counts for a purpose stops counting, or the time in an hour."""
        now = self.now()
        times = [
            llm_calls.oldest(self.database, self.scope.space, bound.since, bound.purpose)
            for bound in self._bounds(purpose, now)
        ]
        return max((now if time is None else time) + HOUR for time in times or [None])
