"""The context of jobs: their scope, the settings, the model's name, and access to the store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import Denied, InvalidInput
from holdfast.events import Events
from holdfast.kinds import Kind
from holdfast.llm.llm_request import LLMRequest
from holdfast.llm.meter import Meter
from holdfast.llm.prompt_files import PromptTemplate, load
from holdfast.records.draft import RecordDraft, prepare
from holdfast.records.intake import Intake
from holdfast.safety import guard
from holdfast.settings import Learning
from holdfast.store import log, record_changes, records, sessions, watermarks
from holdfast.store.database import Database
from holdfast.store.jobs import Lease
from holdfast.store.record_changes import Writing
from holdfast.store.records import NOW, RecordFilter, SpaceState
from holdfast.text.tokens import CountTokens
from holdfast.types import Job, Message, Record, Scope

if TYPE_CHECKING:
    from holdfast.search.search import Search

# Kinds of jobs that are also done without a model.
BY_RULES = ("observe", "episode")

_INSTRUCTIONS = """What is to be learned, and what not, in the words of the user. They decide what is worth
writing down; the form of the answer, and what it must rest on, stay as they are described below:
<instructions>
{}
</instructions>

"""


def micros(duration: timedelta) -> int:
    """Return a duration in whole microseconds."""
    return duration // timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class UnitResult:
    """The records that a unit wrote, how many proposals were dropped (reason → number), and notes."""

    records: tuple[Record, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict, hash=False)
    note: str = ""


@dataclass(frozen=True, slots=True)
class WorkUnit:
    """A part of a job: the request to the model, if any, and a function to apply its answer.

    `apply` stores the results and moves the watermark, in one transaction. It receives None where there is no
    request, and raises Unreadable for an answer that is requested once more. `chat` is the chat that the unit
    is about. `preview` returns the records that a unit without a request would add. `also` are
    the other kinds of jobs that would do with its chat what it does.
    """

    request: LLMRequest | None
    apply: Callable[[str | None], UnitResult]
    chat: str = ""
    preview: Callable[[], Sequence[Record]] = tuple
    also: Sequence[str] = ()


class Watermark(NamedTuple):
    """How far a kind of job has processed a chat: up to message `seq`."""

    chat: str
    kind: str
    seq: int


@dataclass(frozen=True, slots=True)
class JobContext:
    """The context of jobs: for which scope, by which settings, through which store.

    `intake_of` returns the intake of a scope. `prompt_versions` overrides prompts by name.
    `model`, `guard` and `embedder` are names, "" for none. `jobs` are the jobs that are planned together,
    `payload` is that of the first, and `held` the lease on them, None in a dry run.
    """

    database: Database
    scope: Scope
    kinds: Mapping[str, Kind]
    count_tokens: CountTokens
    now: Callable[[], int]
    settings: Learning
    events: Events
    intake_of: Callable[[Scope], Intake]
    search: Callable[[], Search]
    prompt_versions: Mapping[str, str] = field(default_factory=dict)
    model: str = ""
    guard: str = ""
    embedder: str = ""
    jobs: Sequence[Job] = ()
    payload: Mapping[str, object] = field(default_factory=dict)
    held: Lease | None = None

    @property
    def space(self) -> str:
        """The space of the scope."""
        return self.scope.space

    @property
    def intake(self) -> Intake:
        """The intake for records of the scope."""
        return self.intake_of(self.scope)

    def for_agent(self, agent: str) -> JobContext:
        """Return the same context for another agent of the user."""
        return replace(self, scope=replace(self.scope, agent=agent))

    def of(self, batch: Lease, *, held: Lease | None = None) -> JobContext:
        """Return the context of a batch of jobs, which is that of their agent."""
        own = self.for_agent(batch.jobs[0].agent)
        return replace(own, jobs=batch.jobs, payload=batch.payload, held=held)

    def meter(self) -> Meter:
        """Return the meter for the calls of models of the scope."""
        limits = self.settings.limits
        return Meter(self.database, self.scope, self.count_tokens, self.now, limits, self.events)

    # Reading

    def prompt(self, name: str) -> PromptTemplate:
        """Return a prompt in the version that was chosen, else the usual one."""
        prompt = load(name, self.prompt_versions.get(name))
        # Without credentials.
        own = escape(guard.mask(self.settings.instructions.strip()), quote=False)
        return replace(prompt, preface=_INSTRUCTIONS.format(own)) if own else prompt

    def read_records(self, wanted: RecordFilter) -> list[Record]:
        """Return the current records that pass a filter."""
        return records.read(self.database, self.space, NOW.version, wanted)

    def read_messages(self, chat: str, after: int, last: int) -> list[Message]:
        """Return the messages of a chat from after one seq to another."""
        return log.read(self.database, self.space, chat, after=after, before=last + 1)

    def length(self, chat: str) -> int:
        """Return the newest seq of a chat."""
        return sessions.length(self.database, self.space, chat)

    def watermark(self, chat: str, kind: str) -> int:
        """Return up to which message of a chat a kind of job is done, 0 for none."""
        return watermarks.read(self.database, self.space, chat, kind)

    # Writing

    def storable(self, drafts: Sequence[RecordDraft]) -> tuple[list[RecordDraft], Counter[str]]:
        """Return the drafts that can be stored, and why the others cannot."""
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
        *done: Watermark,
        check: Callable[[Writing], None] | None = None,
        beside: Callable[[SpaceState], Callable[[Writing], object]] | None = None,
    ) -> tuple[Record, ...]:
        """Store drafts, move watermarks and emit the events, if the job is still leased: in one transaction.

        What `beside` prepares is written in it as well; see `Intake.remember`.

        Returns:
            The records that are new or changed, without those that said so already.

        Raises:
            LeaseLost: another worker has the job; nothing was stored.
            InvalidInput, Denied, Conflict: as `Intake.remember`, and what `check` raises; nothing was stored.

        """
        before = 0

        def also(changes: Writing) -> None:
            nonlocal before
            before = changes.version
            self.advance(changes, *done)
            if check is not None:
                check(changes)

        stored = self.intake.remember(drafts, merge=True, also=also, beside=beside)
        written = tuple({record.version: record for record in stored if record.version > before}.values())
        self.events.tell_of(self.scope, written)
        return written

    def pass_over(self, chat: str, *done: Watermark, note: str = "") -> WorkUnit:
        """Return a unit without a request that only moves watermarks."""
        return WorkUnit(None, lambda _: UnitResult(self.commit([], *done), note=note), chat)

    def transaction(self) -> AbstractContextManager[Writing]:
        """Return a transaction for changes of the space."""
        return record_changes.writing(self.database, self.space, self.now())

    def advance(self, changes: Writing, *done: Watermark) -> None:
        """Check the lease and move watermarks, within a transaction."""
        if self.held is not None:
            self.held.check(changes.tx)
        for mark in done:
            for kind in self.watermark_kinds(mark.kind):
                watermarks.advance(changes.tx, self.space, mark.chat, kind, mark.seq, self.now())

    def watermark_kinds(self, kind: str) -> tuple[str, ...]:
        """Return the watermarks that a kind of job moves; the first one decides what is new.

        What was done by rules is still to be done with a model.
        """
        if kind not in BY_RULES:
            return (kind,)
        return (kind, f"{kind}:rules") if self.model else (f"{kind}:rules",)

    def provenance(self, how: str) -> dict[str, object]:
        """Return the metadata that name the prompt, or the rules, and the model that learned a record."""
        return {"learned": how, "model": self.model} if self.model else {"learned": how}
