"""Learning without a model: what is said in so many words, as records of the kinds that it is of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from holdfast.learning import echo_match
from holdfast.learning.echo_match import EchoFilter
from holdfast.learning.job_context import JobContext, UnitResult
from holdfast.learning.learned_statements import LearnedStatement, learned_statements, record_kind
from holdfast.learning.source import DEFAULT_PRIORITY, Source
from holdfast.records.draft import PROPOSED, RecordDraft, prepare
from holdfast.types import Message, Record

# How statements are learned.
_BY_RULES = "statements"
_CONSTRAINT = "constraint"


@dataclass(frozen=True, slots=True)
class RuleLearner:
    """Stores what is stated in the messages of a source. `outside` are seqs with text of external sources."""

    context: JobContext
    source: Source
    messages: Sequence[Message]
    outside: Collection[int]

    def learn(self, _: str | None) -> UnitResult:
        """Store what is found, and move the watermark."""
        drafts, dropped = self._drafts()
        return UnitResult(self.context.commit(drafts, *self.source.done(self.source.last)), dropped)

    def preview(self) -> list[Record]:
        """Return the records that `learn` would add."""
        drafts, _ = self._drafts()
        intake = self.context.intake
        new = [replace(draft, priority=DEFAULT_PRIORITY) for draft in drafts if intake.is_new(draft)]
        return [prepare(draft, intake.kinds, intake.by) for draft in new]

    def _drafts(self) -> tuple[list[RecordDraft], Counter[str]]:
        """Return drafts of what is found, and what was dropped, by reason.

        However many are asked for, they are kept: a limit is for what a model finds.
        """
        recalled = echo_match.recalled_seqs(self.messages)
        found = learned_statements([message for message in self.messages if message.seq not in recalled])
        if self.source.text:  # nobody says whose words they are
            found = [one._replace(speaker="", is_typed=False) for one in found]
        echo = EchoFilter(self.context, self.messages)
        fresh = [one for one in found if not echo.repeats(one.text, one.messages, one.speaker)]
        flagged = {message.seq for message in self.messages if message.flags}
        kinds = [(one, *record_kind(one, facts=bool(self.source.chat))) for one in fresh]
        drafts, unfit = self.context.storable(
            [
                self._draft(one, kind, target)
                for one, kind, target in kinds
                if kind != _CONSTRAINT or one.messages[1] not in flagged
            ]
        )
        return drafts, Counter({"recalled": len(found) - len(fresh)}) + unfit

    def _draft(self, one: LearnedStatement, kind: str, target: str) -> RecordDraft:
        """Return the draft of a statement; a constraint waits for the user's word."""
        draft = self.source.draft(
            self.context, kind, one.text, _BY_RULES, one.messages, one.speaker, self.outside, target=target
        )
        return replace(draft, flags=(*draft.flags, PROPOSED)) if kind == _CONSTRAINT else draft
