"""Episodes: one record of what was done in each chat, written again when the chat went on.

Other episodes are compared before the transaction, and again if another writer was faster, so that no lock is
held meanwhile.

A chat has one episode, and a new version of it when there is more to say. Of a chat that used external
sources, or that holds orders to the model, it has only the words that cannot come from them. The whole waits
in quarantine beside it, to take its place once the user releases it. What was released is written again as
released as long as the messages since then bring nothing untrusted; else the new text waits. What the user
wrote, or what somebody retracted or discarded, is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from typing import NamedTuple

from holdfast.learning import episode_text
from holdfast.learning.echo_match import says_what_all_know
from holdfast.learning.episode_text import Episode
from holdfast.learning.external_sources import from_here_on, untrusted
from holdfast.learning.grounding import redact
from holdfast.learning.job_context import JobContext, UnitResult, Watermark, WorkUnit
from holdfast.learning.ranking import KIND, closeness, recency
from holdfast.records.draft import UNTRUSTED, RecordDraft, content_of, prepare, quarantine_reason
from holdfast.store.record_changes import Writing
from holdfast.store.records import RecordFilter, SpaceState
from holdfast.text.one_line import cut
from holdfast.types import Message, Record, Writer

_TURNS = 3  # a chat with fewer messages of the user has no episode
SAME = 0.92  # the cosine from which on two episodes say the same

_BY: Writer = "reflect"
# How an episode was learned that no model wrote.
_BY_RULES = "rules"
# The places of an episode: what can be recalled, and what waits beside it.
_STANDS, _HELD = "stands", "held"
# Each more than the one before.
_TRUSTS = ("quarantined", "trusted", "released")
# The metadata that belong to the content of an episode.
_CONTENT = ("files", "decisions", "outcome", UNTRUSTED)

_REPEATED = "a newer session says the same"
_TOO_MANY = "there are as many newer ones as are kept"
_MENDED = "the session was written again without what it was held for"
_OURS = frozenset((_REPEATED, _TOO_MANY, _MENDED))


@dataclass(frozen=True, slots=True)
class ReadChat:
    """A chat as it was read: its length, its episode by rules, and the external sources that it used.

    `own` is the episode without the words that may come from them. `note` is why the chat has no episode, ""
    if it has one.
    """

    chat: str
    length: int
    messages: Sequence[Message]
    episode: Episode
    own: Episode
    untrusted: tuple[str, ...]
    note: str

    @property
    def done(self) -> Watermark:
        """The watermark once its episode is written."""
        return Watermark(self.chat, KIND, self.length)


NOTHING = ReadChat("", 0, (), Episode("", 0), Episode("", 0), (), "")


def read_chat(context: JobContext, chat: str, length: int) -> ReadChat:
    """Return a chat up to a seq, with its episode by rules."""
    messages, names = context.read_messages(chat, 0, length), context.settings.untrusted
    is_known, doubted = says_what_all_know(context), from_here_on(messages, names)
    whole = episode_text.compose(messages, is_known=is_known)
    own = episode_text.compose(messages, doubted, is_known) if doubted else whole
    note = "" if whole.text else "nobody said anything"
    if whole.turns < _TURNS:
        note = f"too short: {whole.turns} turns, {_TURNS} needed"
    return ReadChat(chat, length, messages, whole, own, untrusted(messages, names), note)


def current_text(context: JobContext, chat: ReadChat) -> str:
    """Return the text of the stored episode of a chat, or of its episode by rules."""
    mine, _ = _existing(context, chat.chat)
    newest = _newest(episode for episode in mine if not episode.retracted)
    return newest.text if newest else chat.episode.text


def by_rules(context: JobContext, chat: ReadChat) -> WorkUnit:
    """Return the unit that writes the episode of a chat by rules."""
    if chat.note:
        return context.pass_over(chat.chat, *([chat.done] if chat.length else []), note=chat.note)

    def apply(_: str | None) -> UnitResult:
        return store(context, writer(context, chat, chat.episode, _BY_RULES), [], chat.done)[1]

    return WorkUnit(None, apply, chat.chat)


def writer(
    context: JobContext, chat: ReadChat, episode: Episode, how: str
) -> Callable[[SpaceState], PlannedWrite]:
    """Return a function that compares the episode of a chat with others, and plans the writing."""
    whole = prepare(_draft(context, chat, episode, how, chat.untrusted), context.kinds, _BY)
    own = prepare(_draft(context, chat, chat.own, _BY_RULES), context.kinds, _BY) if chat.own.text else None

    return lambda seen: _plan_write(context, chat, whole, own, seen.version + 1)


def store(
    context: JobContext,
    plan: Callable[[SpaceState], PlannedWrite],
    drafts: Sequence[RecordDraft],
    *done: Watermark,
    check: Callable[[Writing], None] | None = None,
) -> tuple[tuple[Record, ...], UnitResult]:
    """Store drafts and an episode, as `JobContext.commit`; return the records, and the result for it."""
    results: list[UnitResult] = []

    def beside(seen: SpaceState) -> Callable[[Writing], None]:
        step = plan(seen)
        return lambda changes: results.append(step.write(changes))

    written = context.commit(drafts, *done, check=check, beside=beside)
    result = results[-1]
    context.events.tell_of(context.scope, [kept for kept in result.records if not kept.retracted])
    context.events.tell_of(context.scope, [gone for gone in result.records if gone.retracted], "evicted")
    return written, result


def _draft(
    context: JobContext, chat: ReadChat, episode: Episode, how: str, sources: Sequence[str] = ()
) -> RecordDraft:
    """Return the draft of an episode, without the credentials in it, also in its metadata."""
    messages = chat.messages
    meta: dict[str, object] = {
        **context.provenance(how),
        "turns": episode.turns,
        "files": list(map(redact, episode.files)),
        "decisions": list(map(redact, episode.decisions)),
        "outcome": redact(episode.outcome),
        UNTRUSTED: list(map(redact, sources)),
    }
    if times := [message.at for message in messages if message.at]:
        meta["ended"] = max(times).astimezone(UTC).isoformat()
    text = cut(redact(episode.text), episode_text.LONGEST)
    span = (messages[0].seq, messages[-1].seq)
    return RecordDraft(text, KIND, agent=context.scope.agent, chat=chat.chat, messages=span, meta=meta)


# What is to be written


class _Version(NamedTuple):
    """A new version of an episode after `before`, if any; the id of a new one is only its place here."""

    record: Record
    before: Record | None


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """New versions of episodes, and reasons to retract others of the `current` ones."""

    note: str
    versions: Sequence[_Version] = ()
    current: Mapping[str, Record] = field(default_factory=dict)
    retired: Mapping[str, str] = field(default_factory=dict)

    def write(self, changes: Writing) -> UnitResult:
        """Write the versions, and retract what is superfluous."""
        current, written = dict(self.current), []
        for record, before in self.versions:
            held = record.trust == "quarantined"
            fresh = before is None or before.retracted
            action = "quarantine" if held else "add" if fresh else "replace"
            why = quarantine_reason(record) if held else ""
            # A record written just now has its id.
            former = current.get(record.replaces)
            ready = replace(record, replaces=former.id) if former else record
            current[record.id] = changes.put(ready, before, by=_BY, action=action, why=why)
            written.append(current[record.id])
        gone = [changes.end(current[identity], why=why) for identity, why in self.retired.items()]
        return UnitResult((*written, *gone), note=self.note)


def _plan_write(
    context: JobContext, chat: ReadChat, whole: Record, own: Record | None, version: int
) -> PlannedWrite:
    mine, others = _existing(context, chat.chat)
    active = _newest(record for record in mine if record.trust != "quarantined" and not record.replaces)
    held = _newest(record for record in mine if record.trust == "quarantined" and record.action != "release")
    if (newest := active or held) and newest.by == "user":
        return PlannedWrite("the user wrote it")
    if newest and _is_taken_back(newest):
        return PlannedWrite("it was taken back")
    full = _with_trust(whole, active, chat.messages, context.settings.untrusted)
    drafts = _drafts(full, own, active, held)
    pairs = [
        _Version(replace(_over(before, draft), id=before.id if before else place, version=version), before)
        for place, draft, before in drafts
    ]
    versions = [pair for pair in pairs if pair.before is None or _is_news(pair.record, pair.before)]
    anew = {pair.record.id: pair.record for pair in versions}
    now = [anew.get(record.id, before) for record, before in pairs]
    current = [record for record in now if record is not None and not record.retracted]
    ids = {record.id for record in current}
    beside = [record for record in mine if record.id not in ids and not record.retracted]
    waits = any(draft.trust == "quarantined" for _, draft, _ in drafts)
    mended = {record.id: _MENDED for record in beside if record is held and not waits}
    rest = [record for record in (*others, *beside) if record.id not in mended]
    retired = mended | _superfluous(context, current, rest, chat.chat)
    every = {record.id: record for record in (*others, *beside, *current)}
    return PlannedWrite(_note(versions), versions, every, retired)


def _drafts(
    full: Record, own: Record | None, active: Record | None, held: Record | None
) -> list[tuple[str, Record, Record | None]]:
    """Return the drafts to write, each with its place and the record in that place.

    A draft that somebody discarded is not written again, nor one that says no more than the active episode.
    """
    if full.trust != "quarantined":
        return [(_STANDS, full, active or held)]
    drafts = []
    is_released = active is not None and active.trust == "released" and not active.retracted
    if own is not None and own.trust == "trusted" and not is_released:
        drafts.append((_STANDS, own, active))
    stands = active.id if active else _STANDS if drafts else ""
    says_more = not drafts or _substance(full) != _substance(drafts[0][1])
    if says_more and not (stands and held is not None and _is_taken_back(held)):
        drafts.append((_HELD, replace(full, replaces=stands), held))
    return drafts


def _substance(record: Record) -> tuple[object, ...]:
    return (record.text, *(record.meta[name] for name in _CONTENT if name != UNTRUSTED))


def _note(versions: Sequence[_Version]) -> str:
    if not versions:
        return "nothing new"
    waits = [pair.record.trust == "quarantined" for pair in versions]
    if all(waits):
        return "put into quarantine"
    return "written, and put into quarantine as a whole" if any(waits) else "written"


def _existing(context: JobContext, chat: str) -> tuple[list[Record], list[Record]]:
    """Return the episodes of a chat, also retracted ones, and the current ones of the agent's other chats."""
    own = context.read_records(RecordFilter((KIND,), chat=chat, trust=_TRUSTS, retracted=True))
    every = context.read_records(RecordFilter((KIND,), agents=(context.scope.agent,), trust=_TRUSTS))
    return own, [record for record in every if record.chat != chat]


def _newest(some: Iterable[Record]) -> Record | None:
    return max(some, key=lambda record: record.version, default=None)


def _is_taken_back(record: Record) -> bool:
    return record.retracted and record.why not in _OURS


def _with_trust(
    draft: Record, active: Record | None, messages: Sequence[Message], patterns: Sequence[str] | None
) -> Record:
    """Return a draft, in quarantine if its chat used untrusted sources that nobody has released."""
    if not draft.meta[UNTRUSTED]:
        return draft
    flagged = replace(draft, flags=tuple(sorted({*draft.flags, UNTRUSTED})))
    released = active is not None and active.trust == "released" and not active.retracted
    seen = active.messages[1] if active is not None and active.messages else 0
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
    return replace(draft, agent=agent, category=before.category, tags=before.tags, priority=before.priority)


def _is_news(record: Record, before: Record) -> bool:
    """Return whether an episode differs from its last version, and went on since a retraction of that."""
    went_on = True
    if before.retracted and before.messages is not None and record.messages is not None:
        went_on = record.messages[1] > before.messages[1]
    return went_on and _content(record) != _content(before)


def _content(record: Record) -> tuple[object, ...]:
    meta = {name: record.meta.get(name) for name in _CONTENT}
    return (*content_of(replace(record, meta=meta, retracted=False)), record.replaces)


def _superfluous(
    context: JobContext, current: Sequence[Record], rest: Sequence[Record], chat: str
) -> dict[str, str]:
    """Return the episodes to retract, each with the reason: repeated by a newer one, or too many.

    Those in quarantine have a number of their own, so that they displace none that can be recalled.
    """
    every, others = [*rest, *current], [record for record in rest if record.chat != chat]
    gone = {identity: why for record in current for identity, why in _repeats(record, others).items()}
    for held in (False, True):
        left = [entry for entry in every if entry.id not in gone and (entry.trust == "quarantined") is held]
        left.sort(key=recency, reverse=True)
        gone |= {entry.id: _TOO_MANY for entry in left[context.settings.episodes :]}
    return gone


def _repeats(current: Record, others: Sequence[Record]) -> dict[str, str]:
    """Return which of two episodes to retract that say the same: the older one, unless it is trusted more."""
    gone = {}
    for other in others:
        older, newer = sorted((current, other), key=recency)
        if _trust(older) <= _trust(newer) and closeness(current.text, other.text) >= SAME:
            gone[older.id] = _REPEATED
    return gone


def _trust(record: Record) -> tuple[bool, int]:
    return record.by == "user", _TRUSTS.index(record.trust)
