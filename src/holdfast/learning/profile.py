"""The profile of a user, and the changes that a session may make to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from holdfast.errors import Conflict
from holdfast.learning.echo_match import recalled_seqs
from holdfast.learning.grounding import ground, plain_text, redact, says_too_little
from holdfast.learning.job_context import JobContext
from holdfast.learning.question import TranscriptLine, TranscriptPart, transcript_lines
from holdfast.learning.speeches import is_all_typed, speeches_of
from holdfast.llm.json_answers import listed, picked
from holdfast.records.draft import RecordDraft
from holdfast.store import records
from holdfast.store.database import Connection, Database
from holdfast.store.record_changes import Writing
from holdfast.store.records import NOW, RecordFilter
from holdfast.types import Message, Range, Record

PROFILE = "profile"
_MOST = 5  # changes of one answer
_KEPT = 0.5  # the share of its characters that a profile keeps at least


def current_profile(context: JobContext, source: Database | Connection) -> Record | None:
    """Return the profile that is changed: the agent's own, or the one for all agents.

    Not the one that the tenant shares: no erasure in the space of a user could find a copy of it.
    """
    agent = context.scope.agent
    wanted = RecordFilter(kinds=(PROFILE,), agents=tuple(dict.fromkeys((agent, ""))))
    profiles = records.read(source, context.space, NOW.version, wanted)
    return min(profiles, key=lambda profile: profile.agent != agent, default=None)


def revise(
    context: JobContext,
    before: Record | None,
    changes: object,
    part: TranscriptPart,
    messages: Sequence[Message],
    chat: str,
    how: str,
) -> tuple[list[RecordDraft], Counter[str]]:
    """Return the draft of the profile with the changes of an answer that the user's own words state.

    What came from elsewhere stands in the same prompt, and a profile in every later one: no other change is
    made, nor one that rests on what the user pasted.
    """
    text, quotes, dropped = before.text if before else "", list[str](), Counter[str]()
    ranges: list[Range] = []
    span, lines = (part.first, part.last), _typed_lines(part, messages)
    for item in listed(changes)[:_MOST]:
        new = plain_text(item)
        observation = ground(PROFILE, new, item, span, lines)
        if says_too_little(new) or observation.speaker != "user":
            dropped["profile without the user's words"] += not says_too_little(new)
            continue
        old = plain_text(picked(item, "replaces")) if isinstance(item, Mapping) else ""
        quotes.append(redact(observation.quote))
        ranges.append(observation.messages or span)
        text = _substitute(text, old, new)
    if before is not None and len(text) < _KEPT * len(before.text):
        return [], dropped + Counter({"profile would lose too much": 1})
    if not text or (before is not None and text.split() == before.text.split()):
        return [], dropped
    agent, grounds = context.scope.agent, (min(first for first, _ in ranges), max(last for _, last in ranges))
    # Of another agent's it becomes another record, which an erasure has to find.
    of = {"of": [before.id]} if before is not None and before.agent != agent else {}
    meta = {**context.provenance(how), "quotes": [*dict.fromkeys(quotes)], **of}
    source = f"session:{chat}"
    draft = RecordDraft(text, PROFILE, agent=agent, source=source, chat=chat, messages=grounds, meta=meta)
    drafts, unfit = context.storable([draft])
    return drafts, dropped + unfit


def _typed_lines(part: TranscriptPart, messages: Sequence[Message]) -> list[TranscriptLine]:
    """Return the lines that the user typed, without those flagged by the guard."""
    typed = [
        message
        for message, prose in speeches_of(messages)
        if message.role == "user"
        and part.first <= message.seq <= part.last
        and not message.flags
        and is_all_typed(message, prose)
    ]
    return transcript_lines(typed, recalled_seqs(messages))


def _substitute(profile: str, old: str, new: str) -> str:
    """Return a profile with a text in place of an old one, or at its end if that is not found once."""
    if profile.count(old) == 1 and not says_too_little(old):
        return profile.replace(old, new)
    return profile if new in profile else f"{profile}\n{new}".strip()


def conflict_check(context: JobContext, shown: Record | None) -> Callable[[Writing], None]:
    """Return a check that raises Conflict if the profile was changed since it was read."""

    def check(changes: Writing) -> None:
        current = current_profile(context, changes.tx)
        if (current and (current.id, current.version)) != (shown and (shown.id, shown.version)):
            raise Conflict(
                "The profile was changed while a model read the former one.",
                "Try again, so that the session is merged into the current one.",
            )

    return check
