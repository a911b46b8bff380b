"""Episodes: one record of what was done in each chat, written again when the chat went on.

Other episodes are compared before the transaction, and again if another writer was faster, so that no lock is
held meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from functools import partial

from holdfast.learning import episode_text
from holdfast.learning.episode_text import Episode
from holdfast.learning.external_sources import untrusted
from holdfast.learning.grounding import redacted
from holdfast.learning.job_context import JobContext, UnitResult, Watermark, WorkUnit, micros
from holdfast.learning.ranking import KIND, closeness, ended, recency
from holdfast.prompt.transcript import Extent, review
from holdfast.records.draft import RecordDraft, content_of, prepare, quarantine_reason
from holdfast.store import summaries
from holdfast.store.message_rows import to_micros
from holdfast.store.record_changes import Writing
from holdfast.store.records import RecordFilter, SpaceState
from holdfast.text.one_line import cut
from holdfast.types import Message, Record, Writer

SAME = 0.92  # the cosine from which on two episodes say the same

_BY: Writer = "reflect"
# How an episode was learned that no model wrote.
_BY_RULES = "rules"
# The flag, and the metadata that names the sources.
_UNTRUSTED = "untrusted"
# Each more than the one before.
_TRUSTS = ("quarantined", "trusted", "released")
# The metadata that belong to the content of an episode.
_CONTENT = ("files", "decisions", "outcome", _UNTRUSTED)

_REPEATED = "a newer session says the same"
_TOO_OLD = "it is older than episodes are kept"
_TOO_MANY = "there are as many newer ones as are kept"
_MENDED = "the session was written again without what it was held for"
_OURS = frozenset((_REPEATED, _TOO_OLD, _TOO_MANY, _MENDED))


@dataclass(frozen=True, slots=True)
class _ReadChat:
    """A chat as it was read: its length, its episode by rules, and the external sources that it used."""

    chat: str
    length: int
    messages: Sequence[Message]
    episode: Episode
    untrusted: tuple[str, ...]

    @property
    def done(self) -> Watermark:
        return Watermark(self.chat, KIND, self.length)


def plan(context: JobContext) -> Iterator[WorkUnit]:
    """Plan the episodes of the chats of the jobs: a unit for each, with a request if there is a model.

    A chat has one episode, and a new version of it when there is more to say. One of a chat that used
    untrusted sources, or that holds orders to the model, is put into quarantine: beside the episode that is
    there, if any, and in place of the one that waits already. Once the user has released it, it is written
    again as released as long as the messages since then bring nothing untrusted; else the new text waits in
    quarantine beside it. What the user wrote, or what somebody retracted or discarded, is left as it is.
    """
    for job in context.jobs:
        length = context.length(job.chat)
        messages = context.read_messages(job.chat, last=length)
        found = untrusted(messages, context.settings.untrusted)
        yield _unit(context, _ReadChat(job.chat, length, messages, episode_text.compose(messages), found))


def _unit(context: JobContext, chat: _ReadChat) -> WorkUnit:
    turns, least = chat.episode.turns, context.settings.turns
    if turns < least or not chat.episode.text:
        note = f"too short: {turns} turns, {least} needed" if turns < least else "nobody said anything"
        return context.pass_over(chat.chat, *([chat.done] if chat.length else []), note=note)
    shown = _transcript(context, chat) if context.model else ""
    if not shown:
        return WorkUnit(None, partial(_store, context, chat, _BY_RULES, ""), chat.chat)
    prompt = context.prompt(KIND)
    request = episode_text.request(chat.episode, shown, prompt)
    return WorkUnit(request, partial(_store, context, chat, prompt.label, shown), chat.chat)


def _transcript(context: JobContext, chat: _ReadChat) -> str:
    frontier = summaries.frontier(context.database, context.space, chat.chat)
    extent = Extent(limit=context.settings.messages, budget=context.settings.tokens)
    return review(frontier, reversed(chat.messages), extent, context.count_tokens).text


def _store(context: JobContext, chat: _ReadChat, how: str, shown: str, answer: str | None) -> UnitResult:
    """Write an episode, retract superfluous ones, and move the watermark, in one transaction."""
    episode = chat.episode if answer is None else episode_text.read(answer, chat.episode, shown)
    draft = prepare(_draft(context, chat, episode, how), context.kinds, _BY)

    def compare(seen: SpaceState) -> _PlannedWrite:
        return _plan_write(context, chat, draft, seen.version + 1)

    def write(changes: Writing, step: _PlannedWrite) -> UnitResult:
        context.advance(changes, chat.done)
        written, gone = _write(changes, step)
        return UnitResult((*written, *gone), note=step.note)

    result = context.intake.write_compared(compare, write)
    context.events.tell_of(context.scope, [one for one in result.records if not one.retracted])
    context.events.tell_of(context.scope, [one for one in result.records if one.retracted], "evicted")
    return result


def _write(changes: Writing, step: _PlannedWrite) -> tuple[list[Record], list[Record]]:
    current, written = dict(step.current), []
    if (record := step.record) is not None:
        held = record.trust == "quarantined"
        fresh = step.before is None or step.before.retracted
        action = "quarantine" if held else "add" if fresh else "replace"
        why = quarantine_reason(record) if held else ""
        current[record.id] = changes.put(record, step.before, by=_BY, action=action, why=why)
        written.append(current[record.id])
    gone = [changes.end(current[identity], why=why) for identity, why in step.retired.items()]
    return written, gone


def _draft(context: JobContext, chat: _ReadChat, episode: Episode, how: str) -> RecordDraft:
    """Return the draft of an episode, without the credentials in it, also in its metadata."""
    messages = chat.messages
    meta: dict[str, object] = {
        "turns": episode.turns,
        "files": list(map(redacted, episode.files)),
        "decisions": list(map(redacted, episode.decisions)),
        "outcome": redacted(episode.outcome),
        _UNTRUSTED: list(map(redacted, chat.untrusted)),
    }
    if times := [message.at for message in messages if message.at]:
        meta["ended"] = max(times).astimezone(UTC).isoformat()
    text = cut(redacted(episode.text), episode_text.LONGEST)
    span = (messages[0].seq, messages[-1].seq)
    return context.draft(KIND, text, how, chat=chat.chat, messages=span, meta=meta)


# What is to be written


@dataclass(frozen=True, slots=True)
class _PlannedWrite:
    """A version of an episode after `before`, if any, and why others of the `current` ones are retracted."""

    note: str
    record: Record | None = None
    before: Record | None = None
    current: Mapping[str, Record] = field(default_factory=dict)
    retired: Mapping[str, str] = field(default_factory=dict)


def _plan_write(context: JobContext, chat: _ReadChat, draft: Record, version: int) -> _PlannedWrite:
    own, others = _existing(context, chat.chat)
    standing = _newest(one for one in own if one.trust != "quarantined" and not one.replaces)
    held = _newest(one for one in own if one.trust == "quarantined" and one.action != "release")
    if why := _left_alone(own, standing):
        return _PlannedWrite(why)
    judged = _judged(draft, standing, chat.messages, context.settings.untrusted)
    is_held = judged.trust == "quarantined"
    before = held if is_held else standing or held
    # In quarantine, it takes the place of the standing one once it is released.
    replaces = standing.id if standing is not None and is_held else ""
    record = replace(_over(before, judged), replaces=replaces, version=version)
    fresh = before is None or _is_news(record, before)
    current = record if fresh else before if before and not before.retracted else None
    beside = [one for one in own if one is not before and not one.retracted]
    mended = {one.id: _MENDED for one in beside if one is held}
    rest = [one for one in (*others, *beside) if one.id not in mended]
    retired = mended | _superfluous(context, current, rest, chat.chat)
    every = {one.id: one for one in (*others, *beside, *([current] if current else []))}
    note = "nothing new" if not fresh else "put into quarantine" if is_held else "written"
    return _PlannedWrite(note, record if fresh else None, before, every, retired)


def _existing(context: JobContext, chat: str) -> tuple[list[Record], list[Record]]:
    """Return the episodes of a chat, also retracted ones, and the current ones of the agent's other chats."""
    own = context.read_records(RecordFilter((KIND,), chat=chat, trust=_TRUSTS, retracted=True))
    every = context.read_records(RecordFilter((KIND,), agents=(context.scope.agent,), trust=_TRUSTS))
    return own, [one for one in every if one.chat != chat]


def _newest(some: Iterable[Record]) -> Record | None:
    return max(some, key=lambda one: one.version, default=None)


def _left_alone(own: Sequence[Record], standing: Record | None) -> str:
    """Return why the episode of a chat must not be written, "" if it may be."""
    if standing is not None and standing.by == "user":
        return "the user wrote it"
    newest = _newest(own)
    taken_back = newest is not None and newest.why not in _OURS and all(one.retracted for one in own)
    return "it was taken back" if taken_back else ""


def _judged(
    draft: Record, standing: Record | None, messages: Sequence[Message], patterns: Sequence[str] | None
) -> Record:
    """Return a draft, in quarantine if its chat used untrusted sources that nobody has released."""
    if not draft.meta[_UNTRUSTED]:
        return draft
    flagged = replace(draft, flags=tuple(sorted({*draft.flags, _UNTRUSTED})))
    released = standing is not None and standing.trust == "released" and not standing.retracted
    seen = standing.messages[1] if standing is not None and standing.messages else 0
    if released and draft.trust == "trusted" and not untrusted(_since(messages, seen), patterns):
        return replace(flagged, trust="released")
    return replace(flagged, trust="quarantined")


def _since(messages: Sequence[Message], seen: int) -> list[Message]:
    """Return the messages after a seq, and the calls before it that they answer."""
    answered = {call for message in messages if message.seq > seen for call in message.answers}
    return [
        message
        for message in messages
        if message.seq > seen or any(call.id in answered for call in message.calls)
    ]


def _over(before: Record | None, draft: Record) -> Record:
    if before is None:
        return draft
    # The episode of a chat that two agents wrote belongs to both.
    agent = before.agent if before.agent == draft.agent else ""
    return replace(
        draft, id=before.id, agent=agent, category=before.category, tags=before.tags, priority=before.priority
    )


def _is_news(record: Record, before: Record) -> bool:
    """Return whether an episode differs from its last version, and went on since a retraction of that."""
    went_on = True
    if before.retracted and before.messages is not None and record.messages is not None:
        went_on = record.messages[1] > before.messages[1]
    return went_on and _content(record) != _content(before)


def _content(record: Record) -> tuple[object, ...]:
    meta = {name: record.meta.get(name) for name in _CONTENT}
    return content_of(replace(record, meta=meta, retracted=False))


def _superfluous(
    context: JobContext, current: Record | None, rest: Sequence[Record], chat: str
) -> dict[str, str]:
    """Return the episodes to retract, each with the reason: repeated by a newer one, too old, or too many.

    Those in quarantine have a number of their own, so that they displace none that can be recalled.
    """
    settings = context.settings
    every = [*rest, *([current] if current else [])]
    gone = _repeated(current, [one for one in rest if one.chat != chat]) if current else {}
    if settings.episode_age is not None:
        oldest = context.now() - micros(settings.episode_age)
        gone |= {one.id: _TOO_OLD for one in every if to_micros(ended(one)) < oldest}
    for is_held in (False, True):
        left = [one for one in every if one.id not in gone and (one.trust == "quarantined") is is_held]
        left.sort(key=recency, reverse=True)
        gone |= {one.id: _TOO_MANY for one in left[settings.episodes :]}
    return gone


def _repeated(current: Record, others: Sequence[Record]) -> dict[str, str]:
    """Return which of two episodes to retract that say the same: the older one, unless it is trusted more."""
    gone = {}
    for other, cosine in zip(others, closeness(current.text, [one.text for one in others]), strict=True):
        older, newer = sorted((current, other), key=recency)
        if cosine >= SAME and _trust(older) <= _trust(newer):
            gone[older.id] = _REPEATED
    return gone


def _trust(record: Record) -> tuple[bool, int]:
    return record.by == "user", _TRUSTS.index(record.trust)
