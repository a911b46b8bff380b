"""Episodes: what each session did, one record for a session, written again when the session went on.

What is compared is read before the transaction, and again if somebody else wrote in between, so that no lock is held
meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, timedelta
from functools import partial
from typing import TYPE_CHECKING

from holdfast.learning import episode_text
from holdfast.learning.external_sources import untrusted
from holdfast.learning.job_context import Mark, Outcome, Setting, Unit
from holdfast.learning.ranking import KIND, closeness, ended, recency
from holdfast.llm.prompt_files import load
from holdfast.prompt.transcript import Extent, review
from holdfast.records.draft import RecordDraft, content_of, prepare, quarantine_reason
from holdfast.safety import guard
from holdfast.store import log, records, sessions, summaries
from holdfast.store.message_rows import to_micros
from holdfast.store.records import NOW, Seen, Wanted
from holdfast.text.one_line import cut
from holdfast.types import Message, Record, Writer

if TYPE_CHECKING:
    from holdfast.learning.episode_text import Episode
    from holdfast.settings import Learning
    from holdfast.store.records import Writing
    from holdfast.types import Job

SAME = 0.92  # from this cosine on, two sessions did the same

_BY: Writer = "reflect"
_WITHOUT_A_MODEL = "rules"  # how an episode was learned that no model wrote
_UNTRUSTED = "untrusted"  # the flag, and what names the sources
_TRUSTS = ("quarantined", "trusted", "released")  # each more than the one before
_TOLD = ("files", "decisions", "outcome", _UNTRUSTED)  # of the metadata, what an episode says

_REPEATED = "a newer session says the same"
_TOO_OLD = "it is older than episodes are kept"
_TOO_MANY = "there are as many newer ones as are kept"
_MENDED = "the session was written again without what it was held for"
_OURS = frozenset((_REPEATED, _TOO_OLD, _TOO_MANY, _MENDED))


@dataclass(frozen=True, slots=True)
class _Session:
    """A session as it was read: up to which seq, what it did by rules, and the outside sources that it used."""

    chat: str
    length: int
    messages: Sequence[Message]
    episode: Episode
    untrusted: tuple[str, ...]

    @property
    def mark(self) -> Mark:
        return Mark(self.chat, KIND, self.length)


def plan(setting: Setting, jobs: Sequence[Job], payload: Mapping[str, object]) -> Iterator[Unit]:  # noqa: ARG001 - as all plans
    """Plan the episodes of some sessions: a unit for each, with a question if there is a model.

    A chat has one episode, and a new version of it when there is more to say. One of a session that used untrusted
    sources, or that holds orders to the model, is put into quarantine: beside the episode that is there, if any, and in
    place of the one that waits already. Once the user has released it, it is written again as released as long as the
    messages since then bring nothing untrusted; else the new text waits in quarantine beside it. What the user wrote, or
    what somebody retracted or discarded, is left as it is.
    """
    for job in jobs:
        yield _unit(setting, _read(setting, job.chat))


def _read(setting: Setting, chat: str) -> _Session:
    length = sessions.length(setting.database, setting.space, chat)
    messages = log.read(setting.database, setting.space, chat, before=length + 1)
    found = untrusted(messages, setting.learning.untrusted)
    return _Session(chat, length, messages, episode_text.compose(messages), found)


def _unit(setting: Setting, session: _Session) -> Unit:
    turns, least = session.episode.turns, setting.learning.turns
    if turns < least or not session.episode.text:
        note = f"too short: {turns} turns, {least} needed" if turns < least else "nobody said anything"
        return Unit(None, partial(_pass_over, setting, session, note), session.chat)
    shown = _transcript(setting, session) if setting.model else ""
    if not shown:
        return Unit(None, partial(_store, setting, session, _WITHOUT_A_MODEL, ""), session.chat)
    prompt = load(KIND, setting.prompts.get(KIND))
    question = episode_text.question(session.episode, shown, prompt)
    return Unit(question, partial(_store, setting, session, prompt.label, shown), session.chat)


def _transcript(setting: Setting, session: _Session) -> str:
    learning = setting.learning
    frontier = summaries.frontier(setting.database, setting.space, session.chat)
    extent = Extent(limit=learning.messages, budget=learning.tokens)
    return review(frontier, reversed(session.messages), extent, setting.count).text


def _pass_over(setting: Setting, session: _Session, note: str, _: str | None) -> Outcome:
    setting.commit([], *([session.mark] if session.length else []))
    return Outcome(note=note)


def _store(setting: Setting, session: _Session, how: str, shown: str, answer: str | None) -> Outcome:
    """Write an episode, retract those that it makes superfluous, and move the mark, in one transaction."""
    episode = session.episode if answer is None else episode_text.read(answer, session.episode, shown)
    draft = prepare(_draft(setting, session, episode, how), setting.kinds, _BY)

    def compare(seen: Seen) -> _Step:
        return _step(setting, session, draft, seen.version + 1)

    def write(changes: Writing, step: _Step) -> Outcome:
        setting.settle(changes, session.mark)
        written, gone = _write(changes, step)
        return Outcome((*written, *gone), note=step.note)

    outcome = setting.intake(setting.scope).write_compared(compare, write)
    gone = [one for one in outcome.records if one.retracted]
    setting.events.tell_of(setting.scope, [one for one in outcome.records if not one.retracted])
    setting.events.tell_of(setting.scope, gone, "evicted")
    return outcome


def _write(changes: Writing, step: _Step) -> tuple[list[Record], list[Record]]:
    there, written = dict(step.there), []
    if step.record is not None:
        new = changes.put(
            step.record, step.before, by=_BY, action=_action(step.record, step.before), why=_why(step.record)
        )
        there[step.record.id] = new
        written.append(new)
    gone = [changes.end(there[identity], why=why) for identity, why in step.retired.items()]
    return written, gone


def _action(record: Record, before: Record | None) -> str:
    if record.trust == "quarantined":
        return "quarantine"
    return "add" if before is None or before.retracted else "replace"


def _why(record: Record) -> str:
    return quarantine_reason(record) if record.trust == "quarantined" else ""


def _draft(setting: Setting, session: _Session, episode: Episode, how: str) -> RecordDraft:
    """Make a record of an episode. Credentials are cut out of its metadata as well: those of drafts must have none."""
    messages = session.messages
    told: dict[str, object] = {
        "turns": episode.turns,
        "files": list(map(_redacted, episode.files)),
        "decisions": list(map(_redacted, episode.decisions)),
        "outcome": _redacted(episode.outcome),
        _UNTRUSTED: list(map(_redacted, session.untrusted)),
    }
    if times := [message.at for message in messages if message.at]:
        told["ended"] = max(times).astimezone(UTC).isoformat()
    return RecordDraft(
        cut(_redacted(episode.text), episode_text.LONGEST),
        KIND,
        agent=setting.scope.agent,
        chat=session.chat,
        messages=(messages[0].seq, messages[-1].seq),
        meta={**setting.signed(how), **told},
    )


def _redacted(text: str) -> str:
    return guard.redact(text, guard.scan(text))


# What is to be written


@dataclass(frozen=True, slots=True)
class _Step:
    """What is to be written: a version of an episode after `before`, if any, and why others of those `there` are retracted."""

    note: str
    record: Record | None = None
    before: Record | None = None
    there: Mapping[str, Record] = field(default_factory=dict)
    retired: Mapping[str, str] = field(default_factory=dict)


def _step(setting: Setting, session: _Session, draft: Record, version: int) -> _Step:
    own, others = _there(setting, session.chat)
    standing = _newest(one for one in own if one.trust != "quarantined" and not one.replaces)
    held = _newest(one for one in own if one.trust == "quarantined" and one.action != "release")
    if why := _left_alone(own, standing):
        return _Step(why)
    judged = _judged(draft, standing, session.messages, setting.learning.untrusted)
    before = held if judged.trust == "quarantined" else standing or held
    record = replace(_over(before, judged), replaces=_replaced(judged, standing), version=version)
    fresh = before is None or _is_news(record, before)
    current = record if fresh else before if before and not before.retracted else None
    beside = [one for one in own if one is not before and not one.retracted]
    mended = {one.id: _MENDED for one in beside if one is held}
    rest = [one for one in (*others, *beside) if one.id not in mended]
    retired = mended | _superfluous(current, rest, session.chat, setting.learning, setting.now())
    there = {one.id: one for one in (*others, *beside, *([current] if current else []))}
    note = (
        "nothing new" if not fresh else "put into quarantine" if judged.trust == "quarantined" else "written"
    )
    return _Step(note, record if fresh else None, before, there, retired)


def _there(setting: Setting, chat: str) -> tuple[list[Record], list[Record]]:
    """Read the episodes of a chat, whatever became of them, and the current ones of the agent's other chats."""
    database, space, at = setting.database, setting.space, NOW.version
    own = records.read(database, space, at, Wanted((KIND,), chat=chat, trust=_TRUSTS, retracted=True))
    every = records.read(database, space, at, Wanted((KIND,), agents=(setting.scope.agent,), trust=_TRUSTS))
    return own, [one for one in every if one.chat != chat]


def _newest(some: Iterable[Record]) -> Record | None:
    return max(some, key=lambda one: one.version, default=None)


def _left_alone(own: Sequence[Record], standing: Record | None) -> str:
    """Say why the episode of a chat is not for us to write, "" if it is."""
    if standing is not None and standing.by == "user":
        return "the user wrote it"
    newest = _newest(own)
    taken_back = newest is not None and newest.why not in _OURS and all(one.retracted for one in own)
    return "it was taken back" if taken_back else ""


def _judged(
    draft: Record, standing: Record | None, messages: Sequence[Message], patterns: Sequence[str] | None
) -> Record:
    """Put a draft into quarantine if its session used untrusted sources that nobody has released."""
    if not draft.meta[_UNTRUSTED]:
        return draft
    flagged = replace(draft, flags=tuple(sorted({*draft.flags, _UNTRUSTED})))
    released = standing is not None and standing.trust == "released" and not standing.retracted
    seen = standing.messages[1] if standing is not None and standing.messages else 0
    if released and draft.trust == "trusted" and not untrusted(_since(messages, seen), patterns):
        return replace(flagged, trust="released")
    return replace(flagged, trust="quarantined")


def _since(messages: Sequence[Message], seen: int) -> list[Message]:
    """Take the messages after a seq, and the calls before it that they answer."""
    answered = {call for message in messages if message.seq > seen for call in message.answers}
    return [
        message
        for message in messages
        if message.seq > seen or any(call.id in answered for call in message.calls)
    ]


def _replaced(judged: Record, standing: Record | None) -> str:
    """Name the record whose place an episode in quarantine takes once it is released."""
    return standing.id if standing is not None and judged.trust == "quarantined" else ""


def _over(before: Record | None, draft: Record) -> Record:
    if before is None:
        return draft
    # What two agents told of one chat belongs to both.
    agent = before.agent if before.agent == draft.agent else ""
    return replace(
        draft,
        id=before.id,
        agent=agent,
        category=before.category,
        tags=before.tags,
        priority=before.priority,
    )


def _is_news(record: Record, before: Record) -> bool:
    """Say whether an episode says something else than its last version. One that was retracted has to go on for that."""
    if before.retracted and before.messages is not None and record.messages is not None:
        return record.messages[1] > before.messages[1] and _told(record) != _told(before)
    return _told(record) != _told(before)


def _told(record: Record) -> tuple[object, ...]:
    meta = {name: record.meta.get(name) for name in _TOLD}
    return content_of(replace(record, meta=meta, retracted=False))


def _superfluous(
    current: Record | None, rest: Sequence[Record], chat: str, learning: Learning, now: int
) -> dict[str, str]:
    """Choose the episodes to retract, each with the reason: repeated by a newer one, too old, or too many.

    Those in quarantine have a number of their own, so that they displace none that can be recalled.
    """
    there = [*rest, *([current] if current else [])]
    gone = _repeated(current, [one for one in rest if one.chat != chat]) if current else {}
    if learning.episode_age is not None:
        oldest = now - learning.episode_age // timedelta(microseconds=1)
        gone |= {one.id: _TOO_OLD for one in there if to_micros(ended(one)) < oldest}
    for is_held in (False, True):
        left = [one for one in there if one.id not in gone and (one.trust == "quarantined") is is_held]
        left.sort(key=recency, reverse=True)
        gone |= {one.id: _TOO_MANY for one in left[learning.episodes :]}
    return gone


def _repeated(current: Record, others: Sequence[Record]) -> dict[str, str]:
    """Find what a newer session says as well: the older of two, unless it is trusted more."""
    gone = {}
    for other, cosine in zip(others, closeness(current.text, [one.text for one in others]), strict=True):
        older, newer = sorted((current, other), key=recency)
        if cosine >= SAME and _trust(older) <= _trust(newer):
            gone[older.id] = _REPEATED
    return gone


def _trust(record: Record) -> tuple[bool, int]:
    return record.by == "user", _TRUSTS.index(record.trust)
