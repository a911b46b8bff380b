"""Compaction of one chat: whether it is due, and the steps that make summaries of its older messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.errors import InvalidInput, ModelFailed, shown
from holdfast.prompt.window import (
    DEFAULTS,
    SUMMARISED,
    Lossless,
    Policy,
    SummaryBuffer,
    at_budget,
    check_policy,
    is_share,
)
from holdfast.store import sessions
from holdfast.types import CompactionResult, Scope, check_flag

if TYPE_CHECKING:
    from holdfast.compaction.driver import Steps, TimeLimit
    from holdfast.compaction.tree import CompactionInput
    from holdfast.events import Events
    from holdfast.llm.llm_request import LLMRequest
    from holdfast.llm.meter import Meter
    from holdfast.llm.model import LLM, Model
    from holdfast.store.database import Database
    from holdfast.text.tokens import CountTokens

Progress = Callable[[CompactionResult], None]


class ChatCompactor:
    """Let summaries stand for the older messages of one chat. `policy` is that of the memory."""

    def __init__(
        self,
        database: Database,
        scope: Scope,
        chat: str,
        *,
        count_tokens: CountTokens,
        now: Callable[[], int],
        policy: Policy,
        events: Events,
        meter: Callable[[], Meter],
    ) -> None:
        self._database = database
        self._scope = scope
        self._chat = chat
        self._count_tokens = count_tokens
        self._now = now
        self._policy = policy
        self._events = events
        self.meter = meter

    def is_due(
        self, budget: int | None, threshold: float | None, policy: Lossless | SummaryBuffer | None
    ) -> bool:
        """Return whether the chat takes more than a share of the budget, and compaction can do something about it.

        So it is False right after a compaction that could do no more. Costs one small read while there is room.

        Args:
            budget: tokens of the window: of a prompt, without what its system text and what is known take,
                `prompt.tokens["room"]`. None for that of the policy.
            threshold: the share of the budget, above 0; None for that of the policy, 0.75 by default.
            policy: how the window is made, with its own budget; None for that of `Memory(policy=…)` at this one.

        Raises:
            InvalidInput: a negative budget, a threshold that is no share, or a policy that does not say how to compact.

        """
        policy = self.policy_for(policy, budget)
        share = policy.compaction.threshold if threshold is None else threshold
        if not is_share(share):
            raise InvalidInput(
                f"`threshold` is {shown(share)}.", "Pass a fraction above 0 and up to 1, such as 0.75."
            )
        # What reads texts is loaded by those who compact.
        from holdfast.compaction.tree import Compactor

        return Compactor(self.session(), policy.budget, policy.compaction).is_needed(share)

    def compact(
        self,
        *,
        full: bool,
        budget: int | None,
        llm: LLM | None,
        progress: Progress | None,
        policy: Lossless | SummaryBuffer | None,
    ) -> CompactionResult:
        """Let summaries stand for the older messages. Every word stays in the log, and `expand` gives it back.

        The newest turns are never touched, tool calls never parted from their results. The chat may be appended to
        meanwhile, also by others, and nobody waits for this. If two compact it at once, one of them finds that out when
        it stores, stops and says so.

        Args:
            full: False goes over the chat once if it needs compaction, which is what to call after each turn; True goes
                on until the chat is under its target, nothing more can be done, or a limit of the policy is reached (24
                calls of a model, 120 seconds); call it again then. An answer that is not there at the deadline is not
                waited for, and `why` of the result names the thread of a function.
            budget: tokens of the window that the chat is to fit, as for `needs_compaction`.
            llm: what writes the summaries: a function from text to text, synchronous or not, or, with the extra
                `llm`, a model of pydantic-ai or its name. Without one, they are sentences of the messages.
            progress: is called after each summary with the account so far, and before a model is asked as well: then its
                `why` says for which messages. Of an awaited call, on another thread.
            policy: how the window is made, with its own budget; its `compaction` has all limits.

        Raises:
            InvalidInput: a negative budget, no model, or a policy that does not say how to compact.
            ModelFailed: the model raised an error. What was stored before it stays; nothing is stored half.
            MissingExtra: the model needs a package that is not installed.

        """
        from holdfast.compaction.driver import TimeLimit, drive

        model = resolved(llm)
        policy = self.policy_for(policy, budget)
        limit, meter = TimeLimit(policy.compaction), self.meter()
        steps = self.steps(full=full, model=model, progress=progress, policy=policy, limit=limit)

        def ask(prompt: str) -> str:
            if model is None:
                raise InvalidInput("There is no model.", "Pass llm=.")
            return meter.ask(model, summary_question(prompt), limit.wait(), chat=self._chat)

        try:
            done = drive(steps, ask)
        except ModelFailed as error:
            self.announce(error)
            raise
        self.announce(done)
        return done

    def policy_for(
        self, policy: Lossless | SummaryBuffer | None, budget: int | None
    ) -> Lossless | SummaryBuffer:
        """Return the policy that was passed, or else that of the memory, at a budget.

        Raises:
            InvalidInput: it does not say how to compact.

        """
        chosen = chosen_policy(self._policy, policy, budget)
        if not isinstance(chosen, SUMMARISED):
            raise InvalidInput(
                f"The policy {type(chosen).__name__} does not say how to compact.",
                "Use Lossless or SummaryBuffer.",
            )
        return chosen

    def steps(
        self,
        *,
        full: bool,
        model: Model | None,
        progress: Progress | None,
        policy: Lossless | SummaryBuffer,
        limit: TimeLimit | None = None,
        at_once: int = 1,
    ) -> Steps:
        """Return the compaction as a generator, for those who drive it; see `holdfast.compaction.tree`."""
        from holdfast.compaction.tree import Compactor

        if progress is not None and not callable(progress):
            raise InvalidInput(
                f"`progress` is {shown(progress)}.", "Pass a function of one account, or None."
            )
        how = policy.compaction
        compactor = Compactor(
            self.session(), policy.budget, how, model, at_once=at_once, report=progress, limit=limit
        )
        return compactor.run("full" if check_flag(full, "full") else "incremental")

    def announce(self, ended: CompactionResult | ModelFailed) -> None:
        """Notify observers of a compaction, or of its failure."""
        # Only for those who compact.
        from holdfast.events import Event

        own = self._scope
        scope = replace(own, agent=sessions.agent(self._database, own.space, self._chat, own.agent))
        if isinstance(ended, ModelFailed):
            self._events.tell(Event("failed", scope, chat=self._chat, error=str(ended)))
        elif not ended.noop:
            self._events.tell(Event("compacted", scope, compaction=ended, chat=self._chat))

    def session(self) -> CompactionInput:
        """Return what is compacted."""
        from holdfast.compaction.tree import CompactionInput

        return CompactionInput(self._database, self._scope.space, self._chat, self._count_tokens, self._now)


def chosen_policy(default: Policy, policy: Policy | None, budget: int | None) -> Policy:
    """Return the policy that was passed, or else the default at this budget."""
    return at_budget(default, budget) if policy is None else check_policy(policy)


def summary_question(prompt: str) -> LLMRequest:
    """Return the question for a summary, as the meter takes it."""
    # Only for those who have a model.
    from holdfast.llm.llm_request import LLMRequest

    return LLMRequest("compact", prompt, None, "", answer_tokens=DEFAULTS.leaf_target)


def resolved(llm: LLM | Model | None) -> Model | None:
    """Return the model that was passed, ready to be asked; None for none."""
    if llm is None:
        return None
    # Only for those who have a model.
    from holdfast.llm.adapters import resolve

    return resolve(llm)
