"""Compaction of one chat: whether it is due, and the steps that make summaries of its older messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import InvalidInput, ModelFailed, shown
from holdfast.prompt.window import (
    DEFAULTS,
    SUMMARISED,
    CheckedPolicy,
    Lossless,
    SummaryBuffer,
    at_budget,
    check_policy,
    is_share,
    name_of,
)
from holdfast.store import sessions
from holdfast.types import CompactionResult, Scope, check_flag

if TYPE_CHECKING:
    from holdfast.compaction.driver import OnThread, TimeLimit
    from holdfast.compaction.tree import CompactionInput
    from holdfast.events import Events
    from holdfast.llm.llm_request import LLMRequest
    from holdfast.llm.meter import Meter
    from holdfast.llm.model import LLM, Model
    from holdfast.store.database import Database
    from holdfast.text.tokens import CountTokens

Progress = Callable[[CompactionResult], None]


class CompactOptions(NamedTuple):
    """The options of `Chat.compact` besides its model."""

    full: bool
    budget: int | None
    progress: Progress | None
    policy: Lossless | SummaryBuffer | None
    prompts: Mapping[str, str] | None


@dataclass(frozen=True, slots=True)
class ChatCompactor:
    """Let summaries stand for the older messages of one chat. `policy` is that of the memory."""

    database: Database
    scope: Scope
    chat: str
    count_tokens: CountTokens
    now: Callable[[], int]
    policy: CheckedPolicy
    events: Events
    meter: Callable[[], Meter]

    def is_due(
        self, budget: int | None, threshold: float | None, policy: Lossless | SummaryBuffer | None
    ) -> bool:
        """Return whether the chat needs compaction; see `Chat.needs_compaction`."""
        policy = self.policy_for(policy, budget)
        share = policy.compaction.threshold if threshold is None else threshold
        if not is_share(share):
            raise InvalidInput(
                f"`threshold` is {shown(share)}.", "Pass a fraction above 0 and up to 1, such as 0.75."
            )
        # Only for those who compact.
        from holdfast.compaction.tree import Compactor

        return Compactor(self.session(), policy.budget, policy.compaction).is_needed(share)

    def compact(self, llm: LLM | None, options: CompactOptions) -> CompactionResult:
        """Let summaries stand for the older messages; see `Chat.compact`."""
        from holdfast.compaction.driver import finished, here

        async def ask(prompts: list[str], limit: TimeLimit) -> list[str]:
            # Without a model there are no prompts.
            requests = map(summary_question, prompts)
            return [meter.ask(model, request, limit.wait(), chat=self.chat) for request in requests if model]

        model, meter = resolved(llm), self.meter()
        return finished(self.run(model, options, ask, here))

    async def run(
        self,
        model: Model | None,
        options: CompactOptions,
        ask: Callable[[list[str], TimeLimit], Awaitable[list[str]]],
        on_thread: OnThread,
        at_once: int = 1,
    ) -> CompactionResult:
        """Compact as `compact` does, awaited: `ask` returns the answers to a batch of prompts."""
        from holdfast.compaction.driver import TimeLimit, drive
        from holdfast.compaction.tree import Compactor

        full, budget, report, policy, prompts = options
        if report is not None and not callable(report):
            raise InvalidInput(f"`progress` is {shown(report)}.", "Pass a function of one result, or None.")
        chosen = self.policy_for(policy, budget)
        limit, how = TimeLimit(chosen.compaction), chosen.compaction
        compactor = Compactor(
            self.session(), chosen.budget, how, model, prompts, at_once=at_once, report=report, limit=limit
        )
        steps = compactor.run(full=check_flag(full, "full"))
        try:
            result = await drive(steps, lambda prompts: ask(prompts, limit), on_thread)
        except ModelFailed as error:
            await on_thread(partial(self.announce, error))
            raise
        await on_thread(partial(self.announce, result))
        return result

    def policy_for(
        self, policy: Lossless | SummaryBuffer | None, budget: int | None
    ) -> Lossless | SummaryBuffer:
        """Return the policy that was passed, or else that of the memory, at a budget.

        Raises:
            InvalidInput: the policy does not say how to compact.

        """
        chosen = at_budget(self.policy if policy is None else check_policy(policy), budget)
        if not isinstance(chosen, SUMMARISED):
            raise InvalidInput(
                f"The policy {name_of(chosen)} does not say how to compact.",
                "Use Lossless or SummaryBuffer.",
            )
        return chosen

    def announce(self, result: CompactionResult | ModelFailed) -> None:
        """Notify observers of a compaction, or of its failure."""
        # Only for those who compact.
        from holdfast.events import Event

        own = self.scope
        scope = replace(own, agent=sessions.agent(self.database, own.space, self.chat, own.agent))
        if isinstance(result, ModelFailed):
            self.events.tell(Event("failed", scope, chat=self.chat, error=str(result)))
        elif not result.noop:
            self.events.tell(Event("compacted", scope, compaction=result, chat=self.chat))

    def session(self) -> CompactionInput:
        """Return the chat as the input of a compaction."""
        from holdfast.compaction.tree import CompactionInput

        return CompactionInput(self.database, self.scope.space, self.chat, self.count_tokens, self.now)


def summary_question(prompt: str) -> LLMRequest:
    """Return the request for a summary, as the meter takes it."""
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
