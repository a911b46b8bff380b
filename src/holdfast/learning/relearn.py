"""Relearning: learn again from the same messages with another prompt or model, and replace what differs.

A kind with `learn` is learned from all chats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from holdfast.dedup import relate
from holdfast.errors import Conflict, InvalidInput, ModelFailed, shown
from holdfast.kinds import FIL, Kind, wished
from holdfast.learning import episodes, question, ranking
from holdfast.learning.job_context import JobContext
from holdfast.learning.question import FACT
from holdfast.learning.results import Relearning
from holdfast.learning.session import DEFAULT_PRIORITY, MOST_FACTS, NEWEST, PROMPT, SessionQuestion, Source
from holdfast.learning.worker import FOR_ALL, ask_and_read
from holdfast.llm.llm_request import Ask, LLMRequest
from holdfast.llm.model import Model
from holdfast.llm.prompt_files import PromptTemplate
from holdfast.records.draft import RecordDraft, prepare, quarantine_reason
from holdfast.records.intake import COMPARED, Intake
from holdfast.store import erasure_receipts, record_changes, records, sessions
from holdfast.store.record_changes import Writing
from holdfast.store.records import RecordFilter
from holdfast.types import MAX_COUNT, Record, Trust

_KIND = "relearn"
OBSERVATIONS, FACTS, EPISODES = KINDS = ("observations", "facts", "episodes")
# How records that are learned again were learned: the first word of `meta["learned"]`.
_FROM_CHATS = (PROMPT, "statements", "rules")
Difference = tuple[Sequence[Record], Sequence[Record]]
"""The difference for one chat: new records, and those not found again."""


class Choice(NamedTuple):
    """The kinds of records to learn again, and the kinds `of` whose chats are read again.

    `wish` is a kind with `learn`, which is learned from all chats.
    """

    kinds: tuple[str, ...]
    of: tuple[str, ...]
    wish: Kind | None = None


def relearn(context: JobContext, kind: str, version: str | None, model: Model, *, apply: bool) -> Relearning:
    """Learn again from all chats that such records came from; see `memory.learning.relearn`."""
    context = replace(context, model=model.name, prompt_versions={} if version is None else {PROMPT: version})
    prompt, meter = context.prompt(PROMPT), context.meter()
    choice = _choose(context, kind, prompt)

    def ask_about(chat: str, request: LLMRequest) -> str:
        return meter.ask(model, request, context.settings.patience, chat=chat)

    added, removed, kept = list[Record](), list[Record](), 0
    done, failed = list[str](), dict[str, str]()
    for chat, (agent, stored) in _chats(context, choice).items():
        own, ask = context.for_agent(agent), partial(ask_about, chat)
        try:
            if kind == EPISODES:
                new, gone = _rewrite(own, chat, ask, apply=apply)
            else:
                new, gone = _relearn(own, chat, stored, choice, ask, apply=apply)
        except (ModelFailed, Conflict, InvalidInput) as error:
            failed[chat] = str(error)
            if isinstance(error, ModelFailed) and error.reason in FOR_ALL:
                break
            continue
        done.append(chat)
        added += new
        removed += gone
        kept += len(stored) - len(gone)
    difference = tuple(done), tuple(added), tuple(removed), kept
    return Relearning(kind, prompt.label, *difference, failed, apply, *meter.spent())


def _choose(context: JobContext, kind: str, prompt: PromptTemplate) -> Choice:
    """Return the kinds of records to learn again.

    Raises:
        InvalidInput: an unknown kind, or a prompt that does not ask for it.

    """
    wishes = {wish.name: wish for wish in wished(context.kinds)}
    kinds = (*FIL, *((FACT,) if question.parts_of(prompt, ("facts",)) else ()))
    choices = {
        **{name: Choice((name,), (name,), wish) for name, wish in wishes.items()},
        OBSERVATIONS: Choice(kinds, kinds),
        FACTS: Choice((FACT,), (*FIL, FACT)),
        EPISODES: Choice((ranking.KIND,), (ranking.KIND,)),
    }
    if kind not in choices:
        known = ", ".join((*KINDS, *wishes))
        raise InvalidInput(f"{shown(kind)} cannot be relearned.", f"Use one of {known}.")
    if kind == FACTS and FACT not in kinds:
        raise InvalidInput(f"The prompt {prompt.label!r} asks for no facts.", "Use another version.")
    return choices[kind]


def _chats(context: JobContext, choice: Choice) -> dict[str, tuple[str, list[Record]]]:
    """Return the chats to learn from again, with their agents and learned records; for a wish, all chats.

    Records that the user wrote, changed or released are left out: they are not learned again.
    """
    agents = (context.scope.agent, "") if context.scope.agent else None
    is_episode = choice.kinds == (ranking.KIND,)
    trust: tuple[Trust, ...] = ("trusted", "quarantined", *(("released",) if is_episode else ()))
    every = sessions.list_chats(context.database, context.scope, archived=None) if choice.wish else []
    chats: dict[str, tuple[str, list[Record]]] = {chat.id: (chat.agent, []) for chat in reversed(every)}
    for record in context.read_records(RecordFilter(kinds=choice.of, agents=agents, trust=trust)):
        is_ours = record.by == "reflect" and str(record.meta.get("learned", "")).split(" ")[0] in _FROM_CHATS
        if record.chat and is_ours and (record.chat in chats or not choice.wish):
            _, stored = chats.setdefault(record.chat, (record.agent, []))
            stored += [record] if record.kind in choice.kinds else []
    return chats


def _relearn(
    context: JobContext, chat: str, stored: Sequence[Record], choice: Choice, ask: Ask, *, apply: bool
) -> Difference:
    """Extract from all of a chat, and compare the findings with the stored records.

    Raises:
        ModelFailed: the model failed, or answered twice what cannot be read.

    """
    erasures, wish = erasure_receipts.count(context.database, context.space), choice.wish
    source = Source(chat, 1, context.length(chat), has_ended=True)
    parts = ("observe",) if wish else ("observe", "facts")
    session = SessionQuestion.of(context, source, parts, {old.id for old in stored}, [wish] if wish else [])
    drafts: list[RecordDraft] = []
    for part, own in session.pieces:
        read = partial(session.drafts_of, part, own)
        drafts += ask_and_read(ask, session.request(_KIND, part), read, context.model)[0]
    wanted, _ = context.storable([draft for draft in drafts if draft.kind in choice.kinds])
    # Preparing removes what a record may not hold.
    drafts = [replace(draft, priority=DEFAULT_PRIORITY) for draft in wanted]
    findings = [prepare(draft, context.kinds, context.intake.by) for draft in drafts]
    added, removed = _compare(context, chat, findings, stored)
    if apply and (added or removed):
        _exchange(context, added, removed, erasures, session.prompt.label)
    return added, removed


def _rewrite(context: JobContext, chat: str, ask: Ask, *, apply: bool) -> Difference:
    """Write the episode of a chat again, and compare it with those that it has.

    Raises:
        ModelFailed: the model failed, or answered twice what cannot be read.

    """
    erasures = erasure_receipts.count(context.database, context.space)
    length = context.length(chat)
    first = max(0, length - NEWEST) + 1
    session = SessionQuestion.of(context, Source(chat, first, length), ("episode",))
    for part, _messages in session.pieces if session.parts else ():
        ask_and_read(ask, session.request(_KIND, part), partial(session.tell, part), context.model)
    if session.told is None:
        return (), ()
    compare = episodes.writer(context, session.read, session.told, session.prompt.label)
    planned = compare(records.space_state(context.database, context.space))
    added = [replace(new, id=before.id if before else "") for new, before in planned.versions]
    removed = [old for _, old in planned.versions if old is not None and not old.retracted]
    removed += [planned.current[id] for id in planned.retired if planned.current[id].chat == chat]

    def check(changes: Writing) -> None:
        erasure_receipts.check_none_since(changes.tx, context.space, erasures)

    if apply:
        episodes.store(context, compare, [], check=check)
    return added, removed


def _compare(
    context: JobContext, chat: str, findings: Sequence[Record], stored: Sequence[Record]
) -> Difference:
    """Return the findings that are new, and the stored records that were not found again."""
    overruled, left, added = _overruled_records(context, chat), list(stored), list[Record]()
    for new in findings:
        near = [record for record in left if (record.kind, record.target) == (new.kind, new.target)]
        relation = relate(new.text, [record.text for record in near])
        known = relation.choose(near)
        if relation.kind == "duplicate" and known is not None:
            left.remove(known)
        elif not (_is_about(new, overruled) or _is_known(context.intake, new, stored, added)):
            added.append(new)
    room = MOST_FACTS - sum(old.kind == FACT for old in stored if old not in left)
    beyond = [new for new in added if new.kind == FACT][max(0, room) :]
    return [new for new in added if new not in beyond], left


def _overruled_records(context: JobContext, chat: str) -> list[Record]:
    """Return the records learned from a chat that somebody changed or retracted: they stay so."""
    overruled = []
    database, space = context.database, context.space
    for kind in (*FIL, FACT, *(wish.name for wish in wished(context.kinds))):
        for former in records.former_versions(database, space, Record("", kind, "", chat=chat)):
            changes = record_changes.read(database, space, MAX_COUNT, identity=former.id)
            # The last one counts, so that what somebody retracted and wrote again is not overruled.
            last = next((change for change in changes if change.by != "reflect"), None)
            if last is not None and last.version >= former.version and last.after != former.text:
                overruled.append(former)
    return overruled


def _is_about(record: Record, others: Sequence[Record]) -> bool:
    """Return whether a record may say what one of others from the same messages says, or another value."""
    first, last = record.messages or (0, MAX_COUNT)
    spans = [(other, other.messages or (0, MAX_COUNT)) for other in others]
    near = [other.text for other, span in spans if span[0] <= last and first <= span[1]]
    return relate(record.text, near).kind != "new"


def _is_known(intake: Intake, record: Record, stored: Sequence[Record], added: Sequence[Record]) -> bool:
    """Return whether another record says so, whichever chat it came from, or the same answer does."""
    gone = {old.id for old in stored}
    others = [other.text for other, _ in intake.similar(record, COMPARED) if other.id not in gone]
    others += [other.text for other in (*stored, *added) if other.kind == record.kind]
    return relate(record.text, others).kind == "duplicate"


def _exchange(
    context: JobContext, added: Sequence[Record], removed: Sequence[Record], erasures: int, label: str
) -> None:
    """Retract what is not found again and add what is new, in one transaction, which is one batch to `undo`.

    What was compared already is written as it is: also what another prompt did not find, and therefore
    retracted.

    Raises:
        Conflict: something was erased since the chat was read; nothing was stored.

    """
    intake, written = context.intake, []
    with context.transaction() as changes:
        erasure_receipts.check_none_since(changes.tx, context.space, erasures)
        for record in removed:
            if records.is_current(changes.tx, context.space, record):
                intake.take_back(changes, record, "retract", f"{label} does not find it")
        for record in added:
            held = record.trust == "quarantined"
            action, why = ("quarantine", quarantine_reason(record)) if held else ("add", "")
            written.append(intake.put(changes, record, None, action, why))
    context.events.tell_of(context.scope, written)
