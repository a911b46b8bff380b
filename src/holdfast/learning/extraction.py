"""Extraction: from a session, or a text, to findings, insights and lessons, with the words that each came from.

A session that has ended gives facts as well, as many as every later session is to begin with.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from holdfast.dedup import relate
from holdfast.kinds import FIL
from holdfast.learning import echo_match, extraction_prompt
from holdfast.learning.decision_sentences import decisions
from holdfast.learning.echo_filter import Told
from holdfast.learning.external_sources import brought_in
from holdfast.learning.job_context import Mark, Outcome, Setting, Unit
from holdfast.llm.prompt_files import load
from holdfast.records.draft import UNTRUSTED, RecordDraft
from holdfast.safety import guard
from holdfast.store import log, records, sessions, watermarks
from holdfast.store.records import NOW, Wanted
from holdfast.text.shorten import shorten_line
from holdfast.types import Message

if TYPE_CHECKING:
    from holdfast.learning.decision_sentences import Decision
    from holdfast.learning.extraction_prompt import Observation, Part
    from holdfast.llm.prompt_files import Prompt
    from holdfast.types import Job

KIND = "observe"
MOST_FACTS = 5  # of one session, however often it goes on
_WITHOUT_FACTS = "v1"  # the newest prompt that asks for none
_WITHOUT_A_MODEL = "decisions"  # how observations were learned that no model made
_INSTRUCTIONS = ("system", "developer")  # are no history
_KNOWN = 20  # of the observations of a session that goes on, the newest: what a model need not find again
_USER = "user"
_WORD = re.compile(r"\w{3,}")
_ALIKE = 0.6  # the share of its words that a restatement has in common with what it restates
_LONGEST_SOURCE = 120  # characters


class Source(NamedTuple):
    """What is extracted from: a text, or messages of a chat; and what step of what type it was, for the records."""

    chat: str
    first: int
    last: int
    text: str
    step: str
    type: str
    is_news: bool  # what the watermark has not passed, and is to pass
    has_ended: bool = False  # so that it gives facts, and what is too short to be read now is not waited for

    @property
    def name(self) -> str:
        """Say where observations come from, as "{type}:{name}"."""
        named = shorten_line(f"{self.type or 'session'}:{self.step or self.chat}", _LONGEST_SOURCE)
        return guard.redact(
            named, guard.scan(named)
        )  # an id may look like a credential, which no record may hold


def source_of(setting: Setting, job: Job, payload: Mapping[str, object]) -> Source:
    """Say what a job is about: what its payload names, or all that is new in its chat."""
    step, kind = str(payload.get("step", "")), str(payload.get("type", ""))
    text, span = payload.get("text"), payload.get("messages")
    if isinstance(text, str):
        return Source("", 0, 0, text, step, kind, is_news=False)
    if isinstance(span, list | tuple) and len(span) == 2:
        return Source(job.chat, int(span[0]), int(span[1]), "", step, kind, is_news=False)
    seen = watermarks.read(setting.database, setting.space, job.chat, setting.passes(KIND)[0])
    last = sessions.length(setting.database, setting.space, job.chat)
    return Source(job.chat, seen + 1, last, "", step, kind, is_news=True, has_ended=not payload)


def _prompt(setting: Setting, source: Source) -> Prompt:
    """Load the prompt that is chosen, or else the newest one, which asks for facts, where a session has ended."""
    return load(KIND, setting.prompts.get(KIND, None if source.has_ended else _WITHOUT_FACTS))


def plan(setting: Setting, jobs: Sequence[Job], payload: Mapping[str, object]) -> Iterator[Unit]:
    """Plan an extraction: a unit for each part that fits one prompt; without a model, one for the decisions."""
    source = source_of(setting, jobs[0], payload)
    if source.text:
        return _of_text(setting, source)
    return _of_messages(setting, source)


def _of_text(setting: Setting, source: Source) -> Iterator[Unit]:
    if not setting.model:
        said = [decision.text for decision in decisions([Message("user", source.text, seq=1)])]
        drafts = [_draft(setting, "insight", text, source, None, _WITHOUT_A_MODEL) for text in said]
        fit, unfit = setting.fitting(drafts)
        yield Unit(None, lambda _: Outcome(setting.commit(fit), unfit))
        return
    prompt = _prompt(setting, source)
    for part in extraction_prompt.text_parts(source.text, setting.count, setting.learning.tokens):
        question = extraction_prompt.question(part, prompt, step=source.step, type=source.type)
        yield Unit(question, partial(_learn, setting, source, part, [], prompt, ()))


def _of_messages(setting: Setting, source: Source) -> Iterator[Unit]:
    messages = log.read(
        setting.database, setting.space, source.chat, after=source.first - 1, before=source.last + 1
    )
    end = _mark(source, source.last)
    if not setting.model:
        recalled = echo_match.recalled_seqs(messages)
        said = decisions([message for message in messages if message.seq not in recalled])
        yield Unit(None, partial(_decide, setting, source, messages, said, end), source.chat)
        return
    prompt = _prompt(setting, source)
    wanted = Wanted(kinds=(*FIL, extraction_prompt.FACT), chat=source.chat)
    known = records.read(setting.database, setting.space, NOW.version, wanted) if source.first > 1 else []
    texts = [record.text for record in known[-_KNOWN:]]
    parts = list(parts_of(setting, messages))
    outside = brought_in(messages, setting.learning.untrusted)
    for part, own in parts:
        question = extraction_prompt.question(part, prompt, step=source.step, type=source.type, known=texts)
        yield Unit(question, partial(_learn, setting, source, part, own, prompt, outside), source.chat)
    note = "" if parts else _too_little(source)
    passed = end if source.has_ended else ()
    if passed or note:
        yield Unit(None, lambda _: Outcome(setting.commit([], *passed), note=note), source.chat)


def _too_little(source: Source) -> str:
    if source.first > source.last:
        return "nothing was said since the last extraction"
    return f"skipped: less than {extraction_prompt.SHORTEST} characters were said"


def parts_of(setting: Setting, messages: Sequence[Message]) -> Iterator[tuple[Part, list[Message]]]:
    """Split messages into parts that fit one prompt each, with the messages of each; what is too short is left out."""
    told = [message for message in messages if message.role not in _INSTRUCTIONS]
    for part in extraction_prompt.parts(told, setting.count, setting.learning.tokens):
        own = [message for message in told if part.first <= message.seq <= part.last]
        if sum(len(message.content.strip()) for message in own) >= extraction_prompt.SHORTEST:
            yield part, own


def _mark(source: Source, seq: int) -> tuple[Mark, ...]:
    return (Mark(source.chat, KIND, seq),) if source.is_news and source.last else ()


def _decide(
    setting: Setting,
    source: Source,
    messages: Sequence[Message],
    said: Sequence[Decision],
    end: tuple[Mark, ...],
    _: str | None,
) -> Outcome:
    dropped: Counter[str] = Counter()
    told = Told(setting, messages)
    outside = brought_in(messages, setting.learning.untrusted)
    drafts = []
    for decision in said:
        if told.says(decision.text, (decision.seq, decision.seq), decision.speaker):
            dropped["recalled"] += 1
            continue
        span = (decision.seq, decision.seq)
        from_outside = outside if decision.speaker != _USER else ()
        drafts.append(
            _draft(setting, "insight", decision.text, source, span, _WITHOUT_A_MODEL, outside=from_outside)
        )
    drafts, unfit = setting.fitting(drafts)
    return Outcome(setting.commit(drafts, *end), dropped + unfit)


def _learn(
    setting: Setting,
    source: Source,
    part: Part,
    messages: Sequence[Message],
    prompt: Prompt,
    outside: Collection[int],
    answer: str | None,
) -> Outcome:
    drafts, dropped = understood(setting, source, part, messages, prompt, answer or "", outside)
    fitting, unfit = setting.fitting(drafts)
    drafts, beyond = _with_room(setting, source, fitting)
    dropped = Counter(dropped) + unfit + beyond
    written = setting.commit(drafts, *_mark(source, part.last))
    bare = sum("quote" not in record.meta for record in written)
    return Outcome(written, dropped, f"{bare} without words that they rest on" if bare else "")


def _with_room(
    setting: Setting, source: Source, drafts: Sequence[RecordDraft]
) -> tuple[list[RecordDraft], Counter[str]]:
    """Leave out the facts for which there is no room beside those that were learned in the session before.

    What is known already takes none.
    """
    intake = setting.intake(setting.scope)
    room = MOST_FACTS - records.learned(setting.database, setting.space, extraction_prompt.FACT, source.chat)
    taken, dropped = [], Counter[str]()
    for draft in drafts:
        is_new = draft.kind == extraction_prompt.FACT and intake.is_new(draft)
        if is_new and room <= 0:
            dropped[f"fact beyond {MOST_FACTS} of a session"] += 1
            continue
        room -= is_new
        taken.append(draft)
    return taken, dropped


def understood(
    setting: Setting,
    source: Source,
    part: Part,
    messages: Sequence[Message],
    prompt: Prompt,
    answer: str,
    beyond: Collection[int] | None = None,
) -> tuple[list[RecordDraft], Mapping[str, int]]:
    """Make drafts of what a model found in a part, but for what the agent was told by its own memory.

    What it quotes no words of the part for is to wait in quarantine, unless the prompt asks for no quotes.
    `beyond` are the seqs of what came from outside, also of the messages before the part; None looks in the part.

    Raises:
        Unreadable: the answer is not what was asked for.

    """
    reading = extraction_prompt.read(answer, part, messages, facts=extraction_prompt.asks_for_facts(prompt))
    dropped = Counter(reading.dropped)
    found = [one for one in reading.observations if source.has_ended or one.kind != extraction_prompt.FACT]
    dropped["fact before the end of a session"] += len(reading.observations) - len(found)
    said = [one.text for one in found if one.speaker == _USER]
    said += _known_from_user(setting, source.chat)
    outside = brought_in(messages, setting.learning.untrusted) if beyond is None else beyond
    settled = [one for one in found if one.speaker != "assistant" or not _restates(one.text, said)]
    dropped["said by the user already"] += len(found) - len(settled)
    told, asked = Told(setting, messages), extraction_prompt.asks_for_quotes(prompt)
    fresh = [one for one in settled if not told.says(one.text, one.messages, one.speaker)]
    dropped["recalled"] += len(settled) - len(fresh)
    drafts = [
        _draft(
            setting,
            one.kind,
            one.text,
            source,
            one.messages,
            prompt.label,
            one,
            outside if one.speaker != _USER else (),
            is_bare=asked and not one.quote,
        )
        for one in fresh
    ]
    return drafts, +dropped


def _known_from_user(setting: Setting, chat: str) -> list[str]:
    """Read what was learned from the user's own words in a session before."""
    wanted = Wanted(kinds=(*FIL, extraction_prompt.FACT), chat=chat)
    known = records.read(setting.database, setting.space, NOW.version, wanted) if chat else []
    return [record.text for record in known if record.meta.get("speaker") == _USER]


def _restates(text: str, said: Sequence[str]) -> bool:
    """Say whether a text says what the user said, or another value of it; of what is doubtful, if it is in the same words."""
    relation = relate(text, said)
    if relation.index is None or relation.kind != "unsure":
        return relation.index is not None
    words, others = (set(_WORD.findall(one.casefold())) for one in (text, said[relation.index]))
    return len(words & others) >= _ALIKE * len(words)


def _draft(
    setting: Setting,
    kind: str,
    text: str,
    source: Source,
    span: tuple[int, int] | None,
    how: str,
    found: Observation | None = None,
    outside: Collection[int] = (),
    *,
    is_bare: bool = False,
) -> RecordDraft:
    """Make a draft. What came from `outside`, and the user did not say, is to wait in quarantine, as is what rests on nothing."""
    meta = setting.signed(how) | (extraction_prompt.grounds(found) if found else {})
    return RecordDraft(
        text,
        kind,
        agent=setting.scope.agent,
        target=found.target if found else "",
        source=source.name,
        chat=source.chat,
        messages=span if source.chat else None,
        meta=meta,
        flags=(UNTRUSTED,) if is_bare or (span and any(span[0] <= seq <= span[1] for seq in outside)) else (),
    )
