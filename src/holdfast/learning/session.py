"""One question about a session: what to observe of it, its episode, and what the user says of themselves.

It is asked in parts where the session is long. Observing, episodes and reflection read the same words, so the
first of them asks for all; what an answer leaves out is asked by the job whose part it is, in the same way.
Without a model, what is said in so many words is learned.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from types import MappingProxyType
from typing import NamedTuple

from holdfast.dedup import relate
from holdfast.kinds import FIL, Kind, wished
from holdfast.learning import episode_text, episodes, profile, question, ranking
from holdfast.learning.echo_match import EchoFilter, recalled_seqs
from holdfast.learning.episode_text import Episode
from holdfast.learning.episodes import PlannedWrite, ReadChat
from holdfast.learning.external_sources import outside_seqs
from holdfast.learning.grounding import Observation, grounds, read_observations, redact
from holdfast.learning.job_context import JobContext, UnitResult, Watermark, WorkUnit
from holdfast.learning.question import FACT, SHORTEST, TranscriptPart, asks_for_quotes, unescape
from holdfast.learning.speeches import learned_statements, record_kind
from holdfast.llm.json_answers import has, parse, picked, table
from holdfast.llm.llm_request import LLMRequest, Unreadable
from holdfast.llm.prompt_files import PromptTemplate
from holdfast.records.draft import PROPOSED, UNTRUSTED, RecordDraft, prepare
from holdfast.store import records, sessions, watermarks
from holdfast.store.records import RecordFilter, SpaceState
from holdfast.store.watermarks import PendingChat
from holdfast.text.shorten import shorten_line
from holdfast.types import Message, Record

PROMPT = "session"
KIND, REFLECT = "observe", "reflect"
OTHERS = (ranking.KIND, REFLECT)
"""The kinds of jobs that have nothing left to do once an answer has all parts."""
NEWEST = 200  # messages of a chat that one reflection, or the episode of a long chat, reads
_BATCH = 5  # chats of one reflection
MOST_FACTS = 5  # of one chat, however often it goes on
DEFAULT_PRIORITY = 5  # of a record that is not stored yet
_LONGEST_NAME = 120  # characters of the name of a source
_BY_RULES = "statements"  # how they were learned
_CONSTRAINT = "constraint"
_OBSERVE, _FACTS, _EPISODE, _PROFILE = "observe", "facts", "episode", "profile"
# Roles of messages that are no history.
_INSTRUCTIONS = ("system", "developer")
_KNOWN = 20  # of the observations of a chat that goes on, the newest: what a model need not find again
_NOTHING = re.compile(r"\bnothing (?:new )?to save\b", re.IGNORECASE)
_WORD = re.compile(r"\w{3,}")
_ALIKE = 0.6  # the share of its words that a restatement has in common with what it restates


class Source(NamedTuple):
    """A text, or messages of a chat; with the name and type of its step.

    `is_news` is whether the watermark is to pass it. A chat that `has_ended` gives facts, and its end is read
    however short.
    """

    chat: str
    first: int
    last: int
    text: str = ""
    step: str = ""
    type: str = ""
    is_news: bool = False
    has_ended: bool = False

    @property
    def name(self) -> str:
        """The source of the records, "{type}:{name}"; an id may look like a credential."""
        return redact(shorten_line(f"{self.type or 'session'}:{self.step or self.chat}", _LONGEST_NAME))

    def done(self, seq: int) -> tuple[Watermark, ...]:
        """Return the watermark to move once all up to a seq is learned, if it is to move."""
        return (Watermark(self.chat, KIND, seq),) if self.is_news and self.last else ()

    def draft(
        self,
        context: JobContext,
        observation: Observation,
        how: str,
        outside: Collection[int],
        *,
        meta: Mapping[str, object] = MappingProxyType({}),
        is_bare: bool = False,
    ) -> RecordDraft:
        """Return the draft of what was learned from messages.

        It is untrusted if it `is_bare` of words that it rests on, or if it came from `outside` and the user
        did not say it.
        """
        span = observation.messages if self.chat else None
        came_from = () if observation.speaker == "user" else outside
        is_outside = span is not None and any(span[0] <= seq <= span[1] for seq in came_from)
        return RecordDraft(
            observation.text,
            observation.kind,
            target=observation.target,
            agent=context.scope.agent,
            source=self.name,
            chat=self.chat,
            messages=span,
            meta={**context.provenance(how), **meta},
            flags=(UNTRUSTED,) if is_bare or is_outside else (),
        )


def source_of(context: JobContext) -> Source:
    """Return the source of a job: the text or messages of its payload, or all new messages of its chat."""
    payload, chat = context.payload, context.jobs[0].chat
    step, kind = str(payload.get("step", "")), str(payload.get("type", ""))
    text, span = payload.get("text"), payload.get("messages")
    if isinstance(text, str):
        return Source("", 0, 0, text, step, kind)
    if isinstance(span, list | tuple) and len(span) == 2:
        return Source(chat, int(span[0]), int(span[1]), "", step, kind)
    seen = context.watermark(chat, context.watermark_kinds(KIND)[0])
    return Source(chat, seen + 1, context.length(chat), "", step, kind, is_news=True, has_ended=not payload)


# The jobs


def joined_kinds(context: JobContext) -> tuple[str, ...]:
    """Return the other kinds of jobs that "observe" covers: those configured, without own limits."""
    limits, kinds = context.settings.limits, context.settings.kinds
    if not context.model or KIND in limits or KIND not in kinds:
        return ()
    return tuple(kind for kind in OTHERS if kind in kinds and kind not in limits)


def observe(context: JobContext) -> Iterator[WorkUnit]:
    """Plan the extraction from a text or from new messages, by a model or by rules."""
    source = source_of(context)
    if not context.model:
        return iter([by_rules(context, source, messages_of(context, source))])
    parts = {_OBSERVE, *((_FACTS,) if source.has_ended else ())}
    # After an unreadable answer, each part has a request of its own.
    others = joined_kinds(context) if source.has_ended and context.jobs[0].reason != "answer" else ()
    if ranking.KIND in others and context.watermark(source.chat, ranking.KIND) < source.last:
        parts.add(_EPISODE)
    if REFLECT in others and _is_reflected_on(context, source):
        parts.add(_PROFILE)
    return SessionQuestion.of(context, source, parts).units(KIND)


def _is_reflected_on(context: JobContext, source: Source) -> bool:
    """Return whether a source covers all that reflection would read of a chat that is not archived."""
    seen = context.watermark(source.chat, REFLECT)
    info = sessions.info(context.database, context.scope, source.chat)
    return source.first - 1 <= seen < source.last and info is not None and not info.archived


def episode(context: JobContext) -> Iterator[WorkUnit]:
    """Plan the episode of a chat: by a model from what is new in it, or by rules; see `episodes`."""
    chat = context.jobs[0].chat
    length, seen = context.length(chat), context.watermark(chat, ranking.KIND)
    if context.model and 0 < length <= seen:
        yield context.pass_over(chat, note="nothing was said since the last episode")
        return
    first = max(seen, length - NEWEST) + 1
    session = SessionQuestion.of(context, Source(chat, first, length), {_EPISODE})
    if context.model and session.parts and session.pieces:
        yield from session.units(ranking.KIND)
    elif context.model and seen:
        yield context.pass_over(chat, session.read.done, note="nothing was said since the last episode")
    else:
        yield episodes.by_rules(context, session.read)


def reflect(context: JobContext) -> Iterator[WorkUnit]:
    """Plan a reflection: units for each chat of the agent with news, the one that waits longest first."""
    for news in _pending(context, context.scope.agent)[:_BATCH]:
        first = max(news.seen, news.length - NEWEST) + 1
        source = Source(news.chat, first, news.length)
        yield from SessionQuestion.of(context, source, {_OBSERVE, _PROFILE}).units(REFLECT)


def reflection_due(context: JobContext) -> list[str]:
    """Return the agents that have chats with news, the one whose chat waits longest first; "" is no agent."""
    return list(dict.fromkeys(news.agent for news in _pending(context, context.scope.agent or None)))


def _pending(context: JobContext, agent: str | None) -> list[PendingChat]:
    return watermarks.pending_chats(
        context.database,
        context.space,
        REFLECT,
        agent=agent,
        archived=False,
        most=context.settings.attempts,
        now=context.now(),
    )


# Without a model


def by_rules(context: JobContext, source: Source, messages: Sequence[Message]) -> WorkUnit:
    """Return the unit that stores the statements in a source, and moves the watermark."""
    find, intake = partial(_statement_drafts, context, source, messages), context.intake

    def learn(_: str | None) -> UnitResult:
        drafts, dropped = find()
        return UnitResult(context.commit(drafts, *source.done(source.last)), dropped)

    def preview() -> list[Record]:
        new = [replace(draft, priority=DEFAULT_PRIORITY) for draft in find()[0] if intake.is_new(draft)]
        return [prepare(draft, intake.kinds, intake.by) for draft in new]

    return WorkUnit(None, learn, source.chat, preview)


def _statement_drafts(
    context: JobContext, source: Source, messages: Sequence[Message]
) -> tuple[list[RecordDraft], Counter[str]]:
    """Return drafts of the statements in messages, and the number of those dropped, by reason.

    Their number has no limit: limits are for the findings of a model. A constraint waits for the user's
    approval.
    """
    recalled, outside = recalled_seqs(messages), outside_seqs(messages, context.settings.untrusted)
    claims = learned_statements([message for message in messages if message.seq not in recalled])
    if source.text:  # the speaker is unknown
        claims = [claim._replace(speaker="", is_typed=False) for claim in claims]
    echo = EchoFilter(context, messages)
    fresh = [claim for claim in claims if not echo.repeats(claim.text, claim.messages, claim.speaker)]
    flagged, drafts = {message.seq for message in messages if message.flags}, []
    for claim in fresh:
        kind, target = record_kind(claim, facts=bool(source.chat))
        observation = Observation(kind, claim.text, claim.messages, "", claim.speaker, target)
        draft = source.draft(context, observation, _BY_RULES, outside)
        if kind != _CONSTRAINT:
            drafts.append(draft)
        elif claim.messages[1] not in flagged:
            drafts.append(replace(draft, flags=(*draft.flags, PROPOSED)))
    storable, unfit = context.storable(drafts)
    return storable, Counter({"recalled": len(claims) - len(fresh)}) + unfit


# The question


def messages_of(context: JobContext, source: Source) -> list[Message]:
    """Return the messages of a source; of a text, one."""
    if source.text:
        return [Message("user", source.text, seq=1)]
    return context.read_messages(source.chat, source.first - 1, source.last)


@dataclass(slots=True)
class SessionQuestion:
    """The question to a model about messages of a chat or a text, and the storing of its answers.

    `parts` are what is asked for, `pieces` the parts of the transcript with their messages, `read` the chat
    where its episode is wanted, `outside` the seqs of messages with text of external sources. `relearned` are
    the ids of records that are learned anew, `wishes` the kinds with `learn` that are looked for.
    """

    context: JobContext
    source: Source
    prompt: PromptTemplate
    parts: Collection[str]
    pieces: Sequence[tuple[TranscriptPart, list[Message]]]
    outside: Collection[int]
    read: ReadChat
    relearned: Collection[str]
    wishes: Sequence[Kind]
    # The episode as of the last answer.
    told: Episode | None = field(default=None, init=False)

    @classmethod
    def of(
        cls,
        context: JobContext,
        source: Source,
        parts: Collection[str],
        relearned: Collection[str] = (),
        wishes: Sequence[Kind] | None = None,
    ) -> SessionQuestion:
        """Return the question about a source; for a chat that is too short, it asks for no episode."""
        prompt, messages = context.prompt(PROMPT), messages_of(context, source)
        count, limit = context.count_tokens, context.settings.tokens
        pieces = [(part, list[Message]()) for part in question.split_text(source.text, count, limit)]
        if not source.text:
            history = [message for message in messages if message.role not in _INSTRUCTIONS]
            split = question.split_messages(history, count, limit)
            pieces = [
                (part, [turn for turn in history if part.first <= turn.seq <= part.last]) for part in split
            ]
            # Few words are nothing to observe, but may say enough of a user, or change how a session ended.
            need = SHORTEST if {_OBSERVE, _FACTS}.issuperset(parts) else 0
            pieces = [pair for pair in pieces if sum(len(turn.content.strip()) for turn in pair[1]) >= need]
        is_told = _EPISODE in parts
        read = episodes.read_chat(context, source.chat, source.last) if is_told else episodes.NOTHING
        wanted = {*question.parts_of(prompt, parts)} - ({_EPISODE} if read.note else set())
        outside = outside_seqs(messages, context.settings.untrusted)
        own_wishes = wished(context.kinds) if wishes is None else wishes
        return cls(context, source, prompt, wanted, pieces, outside, read, relearned, own_wishes)

    def units(self, purpose: str) -> Iterator[WorkUnit]:
        """Yield a unit for each part of the transcript, or one that moves the watermarks."""
        coverage = {ranking.KIND: self.read.length > 0, REFLECT: _PROFILE in self.parts}
        also = [kind for kind, is_asked in coverage.items() if is_asked]
        for place, (part, own) in enumerate(self.pieces, 1):
            learn = partial(self.learn, purpose, part, own, is_last=place == len(self.pieces))
            yield WorkUnit(self.request(purpose, part), learn, self.source.chat, also=also)
        if not self.pieces and not self.source.text:
            nothing = f"skipped: less than {SHORTEST} characters were said"
            if self.source.first > self.source.last:
                nothing = "nothing was said since the last extraction"
            done = [*self.source.done(self.source.last)] if self.source.has_ended else []
            done += [Watermark(self.source.chat, REFLECT, self.source.last)] if _PROFILE in self.parts else []
            yield self.context.pass_over(self.source.chat, *done, note=nothing)

    def request(self, purpose: str, part: TranscriptPart) -> LLMRequest:
        """Return the request about a part, with the known records and the episode so far."""
        context, source = self.context, self.source
        places = {"step": question.to_line(source.step), "type": question.to_line(source.type)}
        if _OBSERVE in self.parts and source.first > 1:
            known = [f"- {question.to_line(record.text)}" for record in self.known_records()[-_KNOWN:]]
            places["known"] = "\n".join(known)
        if _PROFILE in self.parts:
            before = profile.current_profile(context, context.database)
            places["profile"] = escape(before.text, quote=False) if before else "(none yet)"
        if _EPISODE in self.parts:
            places["draft"] = escape(self._draft(part), quote=False)
        return question.request(purpose, part, self.prompt, self.parts, places, self.wishes)

    def _draft(self, part: TranscriptPart) -> str:
        """Return the episode of a chat up to a part, "" at the beginning."""
        if part.first == self.read.messages[0].seq:
            return ""
        return self.told.text if self.told else episodes.current_text(self.context, self.read)

    # The answers

    def learn(
        self,
        kind: str,
        part: TranscriptPart,
        messages: Sequence[Message],
        answer: str | None,
        *,
        is_last: bool,
    ) -> UnitResult:
        """Store the contents of an answer and move its watermarks, in one transaction."""
        context, source, value = self.context, self.source, _parse(answer or "")
        fields = value if isinstance(value, Mapping) else {}
        if kind == REFLECT and not has(fields, _PROFILE):
            raise Unreadable('it has no "profile".')
        drafts, dropped = self.drafts_of(part, messages, answer or "")
        drafts, unfit = context.storable(drafts)
        drafts, beyond = self._with_room(drafts)
        dropped += unfit + beyond
        end = source.last if is_last else part.last
        done = [*source.done(end if source.has_ended else part.last)]
        before = profile.current_profile(context, context.database)
        profiles: list[RecordDraft] = []
        if _PROFILE in self.parts and has(fields, _PROFILE):
            changes, how = picked(fields, _PROFILE), self.prompt.label
            profiles, lost = profile.revise(context, before, changes, part, messages, source.chat, how)
            dropped += lost
            done.append(Watermark(source.chat, REFLECT, end))
        check = profile.conflict_check(context, before) if profiles else None
        plan = self._episode(part, fields, answer or "", is_last=is_last)
        if is_last and self.read.length and (self.told is not None or self.read.note):
            done.append(self.read.done)
        written, result = episodes.store(context, plan, [*drafts, *profiles], *done, check=check)
        bare = sum("quote" not in record.meta and record.kind != profile.PROFILE for record in written)
        learned = f"chat {source.chat}: {len(written)} learned or changed" if kind == REFLECT else ""
        notes = (learned, f"{bare} without words that they rest on" if bare else "", part.note, result.note)
        return UnitResult((*written, *result.records), +dropped, "\n".join(filter(None, notes)))

    def _episode(
        self, part: TranscriptPart, fields: Mapping[str, object], answer: str, *, is_last: bool
    ) -> Callable[[SpaceState], PlannedWrite]:
        """Read the episode in an answer; return the function that plans its writing after the last part."""
        if _EPISODE in self.parts and (has(fields, _EPISODE) or self.parts == {_EPISODE}):
            self.tell(part, answer)
        if not is_last or not self.read.length or self.told is None:
            note = f"no episode: {self.read.note}" if self.read.note else "no episode in the answer"
            return lambda _: PlannedWrite(note if is_last and self.read.length else "")
        return episodes.writer(self.context, self.read, self.told, self.prompt.label)

    def tell(self, part: TranscriptPart, answer: str) -> None:
        """Update the episode with an answer about a part."""
        fields = table(_parse(answer), "the answer")
        item = picked(fields, _EPISODE) if has(fields, _EPISODE) else fields
        shown = "\n".join(filter(None, (self._draft(part), unescape(part.transcript))))
        self.told = episode_text.read_episode(item, self.told or self.read.episode, shown)

    def drafts_of(
        self, part: TranscriptPart, messages: Sequence[Message], answer: str
    ) -> tuple[list[RecordDraft], Counter[str]]:
        """Return drafts of a model's findings in a part of a transcript, and the number dropped, by reason.

        Raises:
            Unreadable: the answer is not what was asked for.

        """
        if _OBSERVE not in self.parts:
            return [], Counter()
        value = _parse(answer)
        if isinstance(value, Mapping) and any(has(value, name) for name in (_EPISODE, _PROFILE)):
            value = {"findings": [], **value}
        facts = (FACT,) if _FACTS in self.parts else ()
        kinds = (*(kind.name for kind in self.wishes), *facts, *FIL)
        notes, dropped = read_observations(value, part, messages, kinds)
        said = [note.text for note in notes if note.speaker == "user"]
        said += [record.text for record in self.known_records() if record.meta.get("speaker") == "user"]
        settled = [note for note in notes if note.speaker != "assistant" or not _restates(note.text, said)]
        dropped["said by the user already"] += len(notes) - len(settled)
        echo = EchoFilter(self.context, messages, self.relearned)
        fresh = [note for note in settled if not echo.repeats(note.text, note.messages, note.speaker)]
        dropped["recalled"] += len(settled) - len(fresh)
        # A finding without the quote that was asked for is bare.
        quoted, own, how = asks_for_quotes(self.prompt), (*FIL, FACT), self.prompt.label
        bare = [(note, not note.quote and (quoted or note.kind not in own)) for note in fresh]
        of = partial(self.source.draft, self.context, how=how, outside=self.outside)
        return [of(note, meta=grounds(note), is_bare=is_bare) for note, is_bare in bare], dropped

    def _with_room(self, drafts: Sequence[RecordDraft]) -> tuple[list[RecordDraft], Counter[str]]:
        """Drop the facts beyond the limit of a chat, which counts those learned before.

        A known fact takes no room.
        """
        context, intake = self.context, self.context.intake
        learned = records.count_learned(context.database, context.space, FACT, self.source.chat)
        room, taken, dropped = MOST_FACTS - learned, list[RecordDraft](), Counter[str]()
        for draft in drafts:
            is_new = draft.kind == FACT and intake.is_new(draft)
            if is_new and room <= 0:
                dropped[f"fact beyond {MOST_FACTS} of a session"] += 1
                continue
            room -= is_new
            taken.append(draft)
        return taken, dropped

    def known_records(self) -> list[Record]:
        """Return the records learned from the chat before, none for a text."""
        chat = self.source.chat
        kinds = (*FIL, FACT, *(kind.name for kind in wished(self.context.kinds)))
        return self.context.read_records(RecordFilter(kinds=kinds, chat=chat)) if chat else []


def _parse(answer: str) -> object:
    """Return the value of an answer; plain words may say that there is nothing to save."""
    if "{" not in answer and _NOTHING.search(answer):
        return {"findings": [], "profile": []}
    return parse(answer)


def _restates(text: str, said: Sequence[str]) -> bool:
    """Return whether a text says what the user said, or another value of it; if unsure, by its words."""
    relation = relate(text, said)
    if relation.index is None or relation.kind != "unsure":
        return relation.index is not None
    words, others = (set(_WORD.findall(phrase.casefold())) for phrase in (text, said[relation.index]))
    return len(words & others) >= _ALIKE * len(words)
