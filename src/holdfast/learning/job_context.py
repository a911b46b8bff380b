"""What learning needs to know and to have: whose it is, how it is done, and the way into the records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from holdfast.errors import Denied, InvalidInput
from holdfast.records.draft import RecordDraft, prepare
from holdfast.store import watermarks

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.events import Events
    from holdfast.kinds import Kind
    from holdfast.llm.llm_request import Question
    from holdfast.records.intake import Intake
    from holdfast.settings import Learning
    from holdfast.store.database import Database
    from holdfast.store.jobs import Held
    from holdfast.store.records import Writing
    from holdfast.text.tokens import CountTokens
    from holdfast.types import Record, Scope

BY_RULES = ("observe", "episode")  # kinds of jobs that are done without a model as well
_NONE: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was learned: the records as they were written, what was left out and why (reason → how many), and a note."""

    records: tuple[Record, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=lambda: _NONE, hash=False)
    note: str = ""


@dataclass(frozen=True, slots=True)
class Unit:
    """A part of a job: what a model is asked, if anything, and what is made of its answer.

    `apply` stores what was learned and moves the watermark, in one transaction. It raises Unreadable for an answer that
    is then asked for once more, and receives None where nothing was asked. `chat` is the session it is about.
    """

    question: Question | None
    apply: Callable[[str | None], Outcome]
    chat: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """Move a watermark: of a session for a kind of job, up to a message."""

    chat: str
    kind: str
    seq: int


@dataclass(frozen=True, slots=True)
class Setting:
    """Learn for a scope. `intake` makes what writes its records, `held` are the jobs it is done for, if any.

    `earlier` finds what was said before a time that is most like a text.
    """

    database: Database
    scope: Scope
    kinds: Mapping[str, Kind]
    count: CountTokens
    now: Callable[[], int]
    learning: Learning
    events: Events
    intake: Callable[[Scope], Intake]
    earlier: Callable[[Scope, str, datetime], Sequence[str]] = lambda *_: ()
    prompts: Mapping[str, str] = field(default_factory=dict)  # other versions of prompts, by their names
    model: str = ""  # its name, for what is noted about records
    guard: str = ""  # the name of the caller's guard, if there is one
    held: Held | None = None

    @property
    def space(self) -> str:
        """The space that is learned for."""
        return self.scope.space

    def of(self, agent: str) -> Setting:
        """Give the same for another agent of the user."""
        scope = replace(self.scope, agent=agent)
        return self if scope == self.scope else replace(self, scope=scope)

    def fitting(self, drafts: Sequence[RecordDraft]) -> tuple[list[RecordDraft], Counter[str]]:
        """Take the drafts that can be stored, and count why the others cannot: one of them must not keep the rest out."""
        taken, dropped = [], Counter[str]()
        for draft in drafts:
            try:
                prepare(draft, self.kinds, "reflect")
            except Denied:
                dropped[f"{draft.kind} not allowed"] += 1
            except InvalidInput:
                dropped[f"{draft.kind} that cannot be kept"] += 1
            else:
                taken.append(draft)
        return taken, dropped

    def commit(
        self,
        drafts: Sequence[RecordDraft],
        *marks: Mark,
        merge: bool | None = True,
        check: Callable[[Writing], None] | None = None,
    ) -> tuple[Record, ...]:
        """Store drafts and move watermarks in one transaction, if the job is still ours, and tell of it.

        Returns the records that are new or were changed, not those that said so already.

        Raises:
            Lost: another worker has the job; nothing was stored.
            InvalidInput, Denied, Conflict: as `Intake.remember`, and what `check` raises; nothing was stored.

        """
        before = 0

        def also(changes: Writing) -> None:
            nonlocal before
            before = changes.version
            self.settle(changes, *marks)
            if check is not None:
                check(changes)

        stored = self.intake(self.scope).remember(drafts, merge=merge, also=also)
        written = tuple({one.version: one for one in stored if one.version > before}.values())
        self.events.tell_of(self.scope, written)
        return written

    def settle(self, changes: Writing, *marks: Mark) -> None:
        """Check that the job is still ours and move watermarks, within a transaction."""
        if self.held is not None:
            self.held.check(changes.tx)
        for mark in marks:
            for kind in self.passes(mark.kind):
                watermarks.advance(changes.tx, self.space, mark.chat, kind, mark.seq, self.now())

    def passes(self, kind: str) -> tuple[str, ...]:
        """Name the watermarks that a kind of job moves: what was done by rules is left to be done with a model.

        The first is the one that says what is news.
        """
        if kind not in BY_RULES:
            return (kind,)
        return (kind, f"{kind}:rules") if self.model else (f"{kind}:rules",)

    def signed(self, how: str) -> dict[str, object]:
        """Say in the metadata of a record how it was learned: by which job and prompt, and with which model."""
        return {"learned": how, "model": self.model} if self.model else {"learned": how}
