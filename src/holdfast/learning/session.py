"""One question about a session that fits one prompt: what to observe of it, its episode, and its user.

Observing, episodes and reflection would each read the same words. What an answer leaves out is asked by the
job whose part it is, as all of it is where a session fits no prompt, or where the model could not answer it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from html import escape

from holdfast.kinds import wished
from holdfast.learning import episode_text, episodes, extraction, extraction_prompt, ranking, reflect
from holdfast.learning.echo_match import recalled_seqs
from holdfast.learning.episodes import PlannedWrite, ReadChat
from holdfast.learning.external_sources import brought_in
from holdfast.learning.extraction import Extractor
from holdfast.learning.extraction_prompt import FIELDS, AnswerForm, TranscriptPart, transcript_lines
from holdfast.learning.grounding import TranscriptLine, grounded, plain, says_too_little, unescaped
from holdfast.learning.job_context import JobContext, UnitResult, Watermark, WorkUnit
from holdfast.learning.learned_statements import is_all_typed
from holdfast.learning.speeches import speeches_of
from holdfast.llm.json_answers import has, listed, parse, picked, text_of
from holdfast.llm.llm_request import LLMRequest, Unreadable, exactly
from holdfast.llm.prompt_files import PromptTemplate
from holdfast.records.draft import RecordDraft
from holdfast.store import sessions
from holdfast.store.record_changes import Writing
from holdfast.store.records import SpaceState
from holdfast.types import Record

PROMPT = "session"
OTHERS = (ranking.KIND, reflect.KIND)
"""The kinds of jobs that have nothing left to do once an answer has all parts."""
# What begins a message that has a time.
_TIMED = re.compile(r"^(?P<who>\[\d+\] [^\n:]+?), (?P<hour>\d{4}-\d\d-\d\d \d\d):\d\d: ", re.MULTILINE)
_EPISODE, _PROFILE = "episode", "profile"
_NOT_ASKED = "(Not needed: let its list be empty.)"
_FIELDS = {**{name: FIELDS[name] for name in ("text", "quote")}, "message": {"type": "integer"}}
_CHANGE = {**_FIELDS, "replaces": {"type": "string", "description": "What it replaces, copied exactly."}}
_FORM = AnswerForm(
    _FIELDS,
    {_EPISODE: episode_text.SCHEMA, _PROFILE: {"type": "array", "items": exactly(_CHANGE)}},
    tokens=2_200,
)


def is_joined(context: JobContext) -> bool:
    """Return whether one question is asked: all three jobs run, by our prompts, without own limits."""
    apart = context.prompt_versions.keys() | context.settings.limits.keys()
    return bool(context.model) and {extraction.KIND, *OTHERS} <= {*context.settings.kinds} - apart


def plan(context: JobContext) -> Iterator[WorkUnit]:
    """Plan what is learned of a session: one unit for all of it, or those of an extraction."""
    found = _session(context)
    return extraction.plan(context) if found is None else iter([found.unit()])


def _session(context: JobContext) -> _Session | None:
    source, job = extraction.source_of(context), context.jobs[0]
    if not is_joined(context) or not source.has_ended or not source.last:
        return None
    # Of a chat that goes on only the news is read, and what a model could not answer is asked in parts.
    is_begun = source.first > 1 or context.watermark(source.chat, ranking.KIND) >= source.last
    if is_begun or job.reason == "answer":
        return None
    parts = list(extraction.parts_of(context, context.read_messages(source.chat, last=source.last)))
    if len(parts) != 1:
        return None
    chat = episodes.read_chat(context, source.chat, source.last)
    outside = brought_in(chat.messages, context.settings.untrusted)
    prompt = context.prompt(PROMPT)
    return _Session(context, Extractor(context, source, outside, prompt), parts[0][0], chat, prompt)


@dataclass(frozen=True, slots=True)
class _Session:
    """A session that has ended and fits one prompt, with what stores the observations of it."""

    context: JobContext
    extractor: Extractor
    part: TranscriptPart
    chat: ReadChat
    prompt: PromptTemplate

    def unit(self) -> WorkUnit:
        """Return the unit of a session."""
        return WorkUnit(self._request(), self._learn, self.chat.chat, is_whole=True)

    @property
    def _reflects(self) -> bool:
        """Whether reflection would read the chat: it has news, and is not archived."""
        context, chat = self.context, self.chat
        info = sessions.info(context.database, context.scope, chat.chat)
        is_news = context.watermark(chat.chat, reflect.KIND) < chat.length
        return is_news and info is not None and not info.archived

    def _request(self) -> LLMRequest:
        context = self.context
        profile = reflect.current_profile(context, context.database)
        text = (profile.text if profile else "(none yet)") if self._reflects else _NOT_ASKED
        places = {_PROFILE: escape(text, quote=False)}
        wishes = wished(context.kinds)
        part = replace(self.part, transcript=_with_changed_times(self.part.transcript))
        return extraction_prompt.asked(part, self.prompt, places, wishes, _FORM)

    def _learn(self, answer: str | None) -> UnitResult:
        """Store all parts of an answer, and move the watermarks of those that it has, in one transaction."""
        context, source = self.context, self.extractor.source
        drafts, dropped = self.extractor.offered(self.part, self.chat.messages, answer or "")
        value = parse(answer or "")
        given = value if isinstance(value, Mapping) else {}
        done, episode = list(source.done(source.last)), self._episode(given)
        if has(given, _EPISODE):
            done.append(self.chat.done)
        profile = reflect.current_profile(context, context.database)
        profiles: list[RecordDraft] = []
        if has(given, _PROFILE) and self._reflects:
            done.append(Watermark(source.chat, reflect.KIND, source.last))
            profiles, lost = self._profiles(given, profile)
            dropped += lost
        check = reflect.unchanged(context, profile) if profiles else None
        told = UnitResult()

        def beside(seen: SpaceState) -> Callable[[Writing], None]:
            step = episode(seen)

            def write(changes: Writing) -> None:
                nonlocal told
                told = step.write(changes)

            return write

        written = context.commit([*drafts, *profiles], *done, check=check, beside=beside)
        episodes.tell(context, told)
        notes = (extraction.noted(self.part, written), told.note)
        return UnitResult((*written, *told.records), +dropped, "\n".join(filter(None, notes)))

    def _episode(self, given: Mapping[str, object]) -> Callable[[SpaceState], PlannedWrite]:
        """Return what prepares the writing of an answer's episode, if the session has one."""
        context, chat, item = self.context, self.chat, picked(given, _EPISODE)
        note = episodes.too_short(context, chat) if has(given, _EPISODE) else "no episode in the answer"
        if note:
            return lambda _: PlannedWrite(note)
        episode = episode_text.read(item, chat.episode, unescaped(self.part.transcript))
        return episodes.writer(context, chat, episode, self.prompt.label)

    def _profiles(
        self, given: Mapping[str, object], profile: Record | None
    ) -> tuple[list[RecordDraft], Counter[str]]:
        """Return the draft of the profile with the changes of an answer that the user's own words state.

        What came from elsewhere stands in the same prompt, and a profile in every later one: no other change
        is made, nor one that rests on what the user pasted.
        """
        text, quotes, dropped = profile.text if profile else "", list[str](), Counter[str]()
        lines, span = self._typed(), (self.part.first, self.part.last)
        for item in listed(picked(given, _PROFILE))[: reflect.MOST]:
            new = _text(item)
            found = grounded(_PROFILE, new, item, span, lines)
            if says_too_little(new) or found.speaker != "user":
                dropped["profile without the user's words"] += not says_too_little(new)
                continue
            old = _text(picked(item, "replaces")) if isinstance(item, Mapping) else ""
            quotes.append(found.quote)
            text = _changed(text, old, new)
        chat, label = self.chat.chat, self.prompt.label
        draft = partial(
            self.context.draft, learned_by=label, source=f"session:{chat}", chat=chat, messages=span
        )
        drafts, lost = reflect.rewritten(self.context, profile, text, quotes, {}, draft)
        drafts, unfit = self.context.storable(drafts)
        return drafts, dropped + lost + unfit

    def _typed(self) -> list[TranscriptLine]:
        """Return what the user typed, without what the guard took for an instruction."""
        typed = [
            message
            for message, prose in speeches_of(self.chat.messages)
            if message.role == "user" and not message.flags and is_all_typed(message, prose)
        ]
        return transcript_lines(typed, recalled_seqs(self.chat.messages))


def _with_changed_times(transcript: str) -> str:
    """Return a transcript without the times that are in the same hour as those before."""
    before = ""

    def thinned(line: re.Match[str]) -> str:
        nonlocal before
        last, before = before, line["hour"]
        return f"{line['who']}: " if line["hour"] == last else line[0]

    return _TIMED.sub(thinned, transcript)


def _text(value: object) -> str:
    try:
        return plain(text_of(value))
    except Unreadable:
        # One part of an answer that is no text is left out.
        return ""


def _changed(profile: str, old: str, new: str) -> str:
    """Return a profile with a text in place of an old one, or at its end if that is not found once."""
    if profile.count(old) == 1 and not says_too_little(old):
        return profile.replace(old, new)
    return profile if new in profile else f"{profile}\n{new}".strip()
