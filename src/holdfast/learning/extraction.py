"""Extraction: findings, insights and lessons of a chat or a text, with the words that each rests on.

A chat that has ended gives facts as well, at most five, however often it goes on; and every chat what the
kinds with `learn` are to hold.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from holdfast.dedup import relate
from holdfast.kinds import FIL, wished
from holdfast.learning import echo_match, extraction_prompt, observations
from holdfast.learning.echo_match import EchoFilter
from holdfast.learning.external_sources import brought_in
from holdfast.learning.extraction_prompt import (
    FACT,
    SHORTEST,
    TranscriptPart,
    asks_for_facts,
    asks_for_quotes,
)
from holdfast.learning.grounding import Observation, grounds, redacted
from holdfast.learning.job_context import JobContext, UnitResult, Watermark, WorkUnit
from holdfast.learning.learned_statements import LearnedStatement, learned_statements, record_kind
from holdfast.llm.prompt_files import PromptTemplate
from holdfast.records.draft import PROPOSED, RecordDraft, prepare
from holdfast.store import records
from holdfast.store.records import RecordFilter
from holdfast.text.shorten import shorten_line
from holdfast.types import Message
from holdfast.types.records import Record

KIND = "observe"
MOST_FACTS = 5  # of one chat, however often it goes on
KINDS = (*FIL, FACT)
# The newest prompt that asks for no facts.
_WITHOUT_FACTS = "v1"
# How statements are learned without a model; and once, what was like the examples of a kind.
_BY_RULES = "statements"
# Roles of messages that are no history.
_INSTRUCTIONS = ("system", "developer")
_KNOWN = 20  # of the observations of a chat that goes on, the newest: what a model need not find again
_USER = "user"
DEFAULT_PRIORITY = 5  # of a record that is not stored yet
_CONSTRAINT = "constraint"
_WORD = re.compile(r"\w{3,}")
_ALIKE = 0.6  # the share of its words that a restatement has in common with what it restates
_LONGEST_SOURCE = 120  # characters


class ExtractionSource(NamedTuple):
    """The source of an extraction: a text, or messages of a chat; with the name and type of its step.

    `is_news` is whether the watermark is to pass it. A chat that `has_ended` gives facts, and its end is read
    however short.
    """

    chat: str
    first: int
    last: int
    text: str
    step: str
    type: str
    is_news: bool
    has_ended: bool = False

    @property
    def name(self) -> str:
        """The source of the records, "{type}:{name}"; an id may look like a credential."""
        return redacted(shorten_line(f"{self.type or 'session'}:{self.step or self.chat}", _LONGEST_SOURCE))

    def done(self, seq: int) -> tuple[Watermark, ...]:
        """Return the watermark to move once all up to a seq is learned, if it is to move."""
        return (Watermark(self.chat, KIND, seq),) if self.is_news and self.last else ()


def source_of(context: JobContext) -> ExtractionSource:
    """Return what a job is about: what its payload names, or all that is new in its chat."""
    payload, chat = context.payload, context.jobs[0].chat
    step, kind = str(payload.get("step", "")), str(payload.get("type", ""))
    text, span = payload.get("text"), payload.get("messages")
    if isinstance(text, str):
        return ExtractionSource("", 0, 0, text, step, kind, is_news=False)
    if isinstance(span, list | tuple) and len(span) == 2:
        return ExtractionSource(chat, int(span[0]), int(span[1]), "", step, kind, is_news=False)
    seen = context.watermark(chat, context.watermark_kinds(KIND)[0])
    return ExtractionSource(
        chat, seen + 1, context.length(chat), "", step, kind, is_news=True, has_ended=not payload
    )


def plan(context: JobContext) -> Iterator[WorkUnit]:
    """Plan an extraction: a unit for each part that fits one prompt, or without a model, one by rules."""
    source = source_of(context)
    if source.text:
        messages = [Message("user", source.text, seq=1)]
    else:
        messages = context.read_messages(source.chat, source.first - 1, source.last)
    outside = brought_in(messages, context.settings.untrusted)
    if context.model:
        # Where a chat has ended, the newest prompt, which asks for facts, unless one was chosen.
        prompt = context.prompt(KIND, None if source.has_ended else _WITHOUT_FACTS)
        return _by_model(Extractor(context, source, outside, prompt), prompt, messages)
    extractor = Extractor(context, source, outside, None)
    decide, preview = partial(extractor.decide, messages), partial(extractor.preview, messages)
    return iter([WorkUnit(None, decide, source.chat, preview)])


def _by_model(
    extractor: Extractor, prompt: PromptTemplate, messages: Sequence[Message]
) -> Iterator[WorkUnit]:
    context, source = extractor.context, extractor.source
    parts: list[tuple[TranscriptPart, list[Message]]]
    if source.text:
        split = extraction_prompt.split_text(source.text, context.count_tokens, context.settings.tokens)
        parts = [(part, []) for part in split]
    else:
        parts = list(parts_of(context, messages))
    known = [one.text for one in extractor.learned()[-_KNOWN:]] if source.first > 1 else []
    for part, own in parts:
        request = extraction_prompt.request(
            part,
            prompt,
            step=source.step,
            type=source.type,
            known=known,
            wished=wished(context.kinds),
        )
        yield WorkUnit(request, partial(extractor.learn, part, own), source.chat)
    if source.text:
        return
    note = "" if parts else _too_little(source)
    done = source.done(source.last) if source.has_ended else ()
    if done or note:
        yield context.pass_over(source.chat, *done, note=note)


def _too_little(source: ExtractionSource) -> str:
    if source.first > source.last:
        return "nothing was said since the last extraction"
    return f"skipped: less than {SHORTEST} characters were said"


def parts_of(
    context: JobContext, messages: Sequence[Message]
) -> Iterator[tuple[TranscriptPart, list[Message]]]:
    """Yield the parts of a transcript that fit one prompt each, with their messages, without short ones."""
    history = [message for message in messages if message.role not in _INSTRUCTIONS]
    for part in extraction_prompt.split_messages(history, context.count_tokens, context.settings.tokens):
        own = [message for message in history if part.first <= message.seq <= part.last]
        if sum(len(message.content.strip()) for message in own) >= SHORTEST:
            yield part, own


@dataclass(frozen=True, slots=True)
class Extractor:
    """Stores what is found in a source.

    `outside` are the seqs of messages with text of external sources; `prompt` is None for rules. `relearned`
    are the ids of records that are learned anew.
    """

    context: JobContext
    source: ExtractionSource
    outside: Collection[int]
    prompt: PromptTemplate | None
    relearned: Collection[str] = ()

    def learn(self, part: TranscriptPart, messages: Sequence[Message], answer: str | None) -> UnitResult:
        """Store what a model found in a part of a transcript, and move the watermark."""
        drafts, dropped = self.offered(part, messages, answer or "")
        written = self.context.commit(drafts, *self.source.done(part.last))
        return UnitResult(written, dropped, noted(part, written))

    def offered(
        self, part: TranscriptPart, messages: Sequence[Message], answer: str
    ) -> tuple[list[RecordDraft], Counter[str]]:
        """Return those of `drafts_of` that can be stored, and what was dropped, by reason."""
        drafts, dropped = self.drafts_of(part, messages, answer)
        drafts, unfit = self.context.storable(drafts)
        drafts, beyond = self._with_room(drafts)
        return drafts, dropped + unfit + beyond

    def decide(self, messages: Sequence[Message], _: str | None) -> UnitResult:
        """Store what is found without a model, and move the watermark."""
        drafts, dropped = self.ruled(messages)
        written = self.context.commit(drafts, *self.source.done(self.source.last))
        return UnitResult(written, dropped)

    def preview(self, messages: Sequence[Message]) -> list[Record]:
        """Return the records that `decide` would add."""
        drafts, _ = self.ruled(messages)
        intake = self.context.intake
        new = [replace(draft, priority=DEFAULT_PRIORITY) for draft in drafts if intake.is_new(draft)]
        return [prepare(draft, intake.kinds, intake.by) for draft in new]

    def ruled(self, messages: Sequence[Message]) -> tuple[list[RecordDraft], Counter[str]]:
        """Return drafts of what is found without a model, and what was dropped, by reason.

        However many are asked for, they are kept: a limit is for what a model finds.
        """
        recalled = echo_match.recalled_seqs(messages)
        found = learned_statements([message for message in messages if message.seq not in recalled])
        if self.source.text:  # nobody says whose words they are
            found = [one._replace(speaker="", is_typed=False) for one in found]
        echo = EchoFilter(self.context, messages)
        fresh = [one for one in found if not echo.repeats(one.text, one.messages, one.speaker)]
        flagged = {message.seq for message in messages if message.flags}
        kinds = [(one, *record_kind(one, facts=bool(self.source.chat))) for one in fresh]
        drafts, unfit = self.context.storable(
            [
                self._statement(one, kind, target)
                for one, kind, target in kinds
                if kind != _CONSTRAINT or one.messages[1] not in flagged
            ]
        )
        return drafts, Counter({"recalled": len(found) - len(fresh)}) + unfit

    def _statement(self, one: LearnedStatement, kind: str, target: str) -> RecordDraft:
        """Return the draft of a statement; a constraint waits for the user's word."""
        span = one.messages if self.source.chat else None
        came_from = () if one.speaker == _USER else self.outside
        draft = self.context.draft(
            kind,
            one.text,
            _BY_RULES,
            source=self.source.name,
            chat=self.source.chat,
            messages=span,
            target=target,
            is_untrusted=span is not None and any(span[0] <= seq <= span[1] for seq in came_from),
        )
        return replace(draft, flags=(*draft.flags, PROPOSED)) if kind == _CONSTRAINT else draft

    def drafts_of(
        self, part: TranscriptPart, messages: Sequence[Message], answer: str
    ) -> tuple[list[RecordDraft], Counter[str]]:
        """Return drafts of what a model found in a part of a transcript, and what was dropped, by reason.

        Raises:
            Unreadable: the answer is not what was asked for.

        """
        facts = self.prompt is not None and asks_for_facts(self.prompt)
        wishes = [kind.name for kind in wished(self.context.kinds)]
        observed, dropped = observations.read(answer, part, messages, facts=facts, wished=wishes)
        found = [one for one in observed if self.source.has_ended or one.kind != FACT]
        dropped["fact before the end of a session"] += len(observed) - len(found)
        said = [one.text for one in found if one.speaker == _USER]
        said += [one.text for one in self.learned() if one.meta.get("speaker") == _USER]
        settled = [one for one in found if one.speaker != "assistant" or not _restates(one.text, said)]
        dropped["said by the user already"] += len(found) - len(settled)
        drafts, recalled = self._drafts(messages, settled)
        return drafts, dropped + recalled

    def _drafts(
        self, messages: Sequence[Message], found: Sequence[Observation]
    ) -> tuple[list[RecordDraft], Counter[str]]:
        """Return drafts of observations, and the number of mere repetitions."""
        echo = EchoFilter(self.context, messages, self.relearned)
        fresh = [one for one in found if not echo.repeats(one.text, one.messages, one.speaker)]
        return list(map(self._draft, fresh)), Counter({"recalled": len(found) - len(fresh)})

    def _draft(self, one: Observation) -> RecordDraft:
        """Return the draft of an observation.

        It is untrusted if it rests on no words of the source, unless the prompt asks for no quotes, or if it
        came from `outside` and the user did not say it.
        """
        source, prompt = self.source, self.prompt
        is_wished = one.kind not in KINDS
        is_bare = prompt is not None and (is_wished or asks_for_quotes(prompt)) and not one.quote
        span = one.messages if source.chat else None
        came_from = () if one.speaker == _USER else self.outside
        is_outside = span is not None and any(span[0] <= seq <= span[1] for seq in came_from)
        return self.context.draft(
            one.kind,
            one.text,
            prompt.label if prompt else "",
            source=source.name,
            chat=source.chat,
            messages=span,
            target=one.target,
            meta=grounds(one) if prompt else {},
            is_untrusted=is_bare or is_outside,
        )

    def _with_room(self, drafts: Sequence[RecordDraft]) -> tuple[list[RecordDraft], Counter[str]]:
        """Leave out the facts for which there is no room beside those that the chat has given before.

        What is known already takes none.
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

    def learned(self) -> list[Record]:
        """Return the records that the chat has given before, none for a text."""
        chat = self.source.chat
        kinds = (*KINDS, *(kind.name for kind in wished(self.context.kinds)))
        return self.context.read_records(RecordFilter(kinds=kinds, chat=chat)) if chat else []


def noted(part: TranscriptPart, written: Sequence[Record]) -> str:
    """Return a remark on what rests on no words, and on what was not shown of a part."""
    bare = sum("quote" not in record.meta for record in written)
    return "; ".join(filter(None, (f"{bare} without words that they rest on" if bare else "", part.note)))


def _restates(text: str, said: Sequence[str]) -> bool:
    """Return whether a text says what the user said, or another value of it; if unsure, by its words."""
    relation = relate(text, said)
    if relation.index is None or relation.kind != "unsure":
        return relation.index is not None
    words, others = (set(_WORD.findall(one.casefold())) for one in (text, said[relation.index]))
    return len(words & others) >= _ALIKE * len(words)
