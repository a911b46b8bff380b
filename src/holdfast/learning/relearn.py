"""Relearning: what another prompt, or model, makes of the same words, beside what is stored; and the change to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from holdfast.dedup import relate
from holdfast.errors import Conflict, InvalidInput, ModelFailed
from holdfast.events import Call
from holdfast.kinds import FIL
from holdfast.learning import extraction, extraction_prompt
from holdfast.learning.external_sources import brought_in
from holdfast.learning.extraction import MOST_FACTS, Source
from holdfast.learning.extraction_prompt import FACT
from holdfast.learning.job_context import Setting
from holdfast.learning.results import Relearning
from holdfast.learning.worker import FOR_ALL
from holdfast.llm.llm_request import Question, Unreadable
from holdfast.llm.prompt_files import Prompt, load
from holdfast.records.draft import RecordDraft, as_record, policy, prepare, quarantine_reason
from holdfast.records.intake import COMPARED
from holdfast.store import erasure_receipts, log, records, sessions
from holdfast.store.records import NOW, Wanted, Writing
from holdfast.text.shorten import shown
from holdfast.types import MAX_COUNT, Record

if TYPE_CHECKING:
    from holdfast.records.intake import Intake

KINDS = ("observations",)
_FROM_SESSIONS = (
    "observe",
    "decisions",
)  # how what is learned anew was learned: the first words of `meta["learned"]`

Ask = Callable[[Question, str], str]
Read = Callable[[str], tuple[list[RecordDraft], Mapping[str, int]]]


@dataclass(frozen=True, slots=True)
class Difference:
    """What a session gives now, beside what it gave: what is new, what is no more, and how many say the same."""

    added: tuple[RecordDraft, ...]
    removed: tuple[Record, ...]
    kept: int
    erasures: int  # in the space before the session was read


def relearn(
    setting: Setting, kind: str, version: str | None, ask: Ask, calls: list[Call], *, apply: bool
) -> Relearning:
    """Learn anew from all sessions that observations came from; see `Memory.relearn`."""
    if kind not in KINDS:
        raise InvalidInput(f"{shown(kind)} cannot be learned anew.", f"Use one of {', '.join(KINDS)}.")
    prompt = load(extraction.KIND, version)
    added: list[Record] = []
    removed: list[Record] = []
    kept, chats, failed = 0, [], {}
    kinds = (*FIL, FACT) if extraction_prompt.asks_for_facts(prompt) else FIL
    for chat, stored in learned_from(setting, kinds).items():
        own = setting.of(stored[0].agent)
        try:
            found = difference(own, chat, stored, prompt, ask)
            if apply:
                exchange(own, found, prompt)
        except (ModelFailed, Conflict, InvalidInput) as error:
            failed[chat] = str(error)
            if isinstance(error, ModelFailed) and error.reason in FOR_ALL:
                break
            continue
        chats.append(chat)
        added += [as_record(replace(draft, priority=5)) for draft in found.added]
        removed += found.removed
        kept += found.kept
    return Relearning(
        kind,
        prompt.label,
        tuple(chats),
        tuple(added),
        tuple(removed),
        kept,
        failed,
        apply,
        len(calls),
        sum(call.prompt_tokens for call in calls),
        sum(call.answer_tokens for call in calls),
    )


def learned_from(setting: Setting, kinds: Sequence[str]) -> dict[str, list[Record]]:
    """Find the sessions that records of some kinds were learned from in the background, each with those that are current.

    What the user wrote, changed or released is not among them: it is not to be learned anew.
    """
    agents = (setting.scope.agent, "") if setting.scope.agent else None
    wanted = Wanted(kinds=kinds, agents=agents, trust=("trusted", "quarantined"))
    found: dict[str, list[Record]] = {}
    for record in records.read(setting.database, setting.space, NOW.version, wanted):
        how = str(record.meta.get("learned", "")).split(" ")[0]
        if record.chat and record.by == "reflect" and how in _FROM_SESSIONS:
            found.setdefault(record.chat, []).append(record)
    return found


def difference(setting: Setting, chat: str, stored: Sequence[Record], prompt: Prompt, ask: Ask) -> Difference:
    """Ask about all of a session, and compare what comes with what is stored.

    Raises:
        ModelFailed: the model failed, or answered twice what cannot be read.

    """
    erasures = erasure_receipts.count(setting.database, setting.space)
    last = sessions.length(setting.database, setting.space, chat)
    source = Source(chat, 1, last, "", "", "session", is_news=False, has_ended=True)
    messages = log.read(setting.database, setting.space, chat)
    outside = brought_in(messages, setting.learning.untrusted)
    drafts: list[RecordDraft] = []
    for part, own in extraction.parts_of(setting, messages):
        question = extraction_prompt.question(part, prompt, step="", type="session")
        read = partial(extraction.understood, setting, source, part, own, prompt, beyond=outside)
        drafts += _understood(question, chat, ask, read)
    return _compared(setting, chat, setting.fitting(drafts)[0], stored, erasures)


def _understood(question: Question, chat: str, ask: Ask, read: Read) -> list[RecordDraft]:
    """Ask, and once more if the answer cannot be read."""
    answer = ask(question, chat)
    try:
        return read(answer)[0]
    except Unreadable as why:
        answer = ask(question.again(answer, why), chat)
    try:
        return read(answer)[0]
    except Unreadable as why:
        raise ModelFailed(
            f"The model answered twice what cannot be used: {why}",
            "Try again, or use another model.",
            reason="answer",
        ) from why


def _compared(
    setting: Setting, chat: str, drafts: Sequence[RecordDraft], stored: Sequence[Record], erasures: int
) -> Difference:
    intake = setting.intake(setting.scope)
    overruled = _overruled(setting, chat)
    left = list(stored)
    added: list[RecordDraft] = []
    kept = 0
    for draft in drafts:
        near = [one for one in left if (one.kind, one.target) == (draft.kind, draft.target)]
        relation = relate(draft.text, [one.text for one in near])
        known = relation.choose(near)
        if relation.kind == "duplicate" and known is not None:
            left.remove(known)
            kept += 1
        elif not (_is_about(draft, overruled) or _is_known(intake, draft, stored, added)):
            added.append(draft)
    kept_facts = _facts(stored) - _facts(left)
    return Difference(tuple(_at_most(MOST_FACTS - kept_facts, added)), tuple(left), kept, erasures)


def _facts(some: Sequence[Record]) -> int:
    return sum(one.kind == FACT for one in some)


def _at_most(facts: int, some: Sequence[RecordDraft]) -> list[RecordDraft]:
    """Leave out the facts beyond a number."""
    beyond = [one for one in some if one.kind == FACT][max(0, facts) :]
    return [one for one in some if one not in beyond]


def _overruled(setting: Setting, chat: str) -> list[Record]:
    """Read what was learned in a session, of any kind, and was then changed or taken back by somebody: it stays so."""
    overruled = []
    for kind in (*FIL, FACT):
        for former in records.former(setting.database, setting.space, Record("", kind, "", chat=chat)):
            changes = records.changes(setting.database, setting.space, MAX_COUNT, identity=former.id)
            # The last one counts, so that what somebody took back and wrote again is not overruled.
            last = next((change for change in changes if change.by != "reflect"), None)
            if last is not None and last.version >= former.version and last.after != former.text:
                overruled.append(former)
    return overruled


def _is_about(draft: RecordDraft, others: Sequence[Record]) -> bool:
    """Say whether a draft is from the same messages as one of some others, and may say the same or another value of it."""
    near = [one.text for one in others if _overlap(one, as_record(draft))]
    return relate(draft.text, near).kind != "new"


def _overlap(one: Record, other: Record) -> bool:
    if one.messages is None or other.messages is None:
        return True
    return one.messages[0] <= other.messages[1] and other.messages[0] <= one.messages[1]


def _is_known(
    intake: Intake, draft: RecordDraft, stored: Sequence[Record], added: Sequence[RecordDraft]
) -> bool:
    """Say whether something else that is known says so, whichever session it came from, or the same answer does."""
    gone = {one.id for one in stored}
    target = draft.target or policy(intake.kinds, draft.kind).targets[0]
    near = intake.similar(as_record(replace(draft, target=target)), COMPARED)
    others = [one.text for one in near if one.id not in gone]
    others += [one.text for one in stored if one.kind == draft.kind]
    others += [one.text for one in added if one.kind == draft.kind]
    return relate(draft.text, others).kind == "duplicate"


def exchange(setting: Setting, found: Difference, prompt: Prompt) -> None:
    """Take back what is no more and add what is new, in one transaction, which `undo` takes back as one.

    Raises:
        Conflict: something was erased since the session was read; nothing was stored.

    """
    if not found.added and not found.removed:
        return
    intake = setting.intake(setting.scope)
    with records.writing(setting.database, setting.space, intake.now) as changes:
        erasure_receipts.check_none_since(changes.tx, setting.space, found.erasures)
        for record in found.removed:
            if records.is_current(changes.tx, setting.space, record):
                intake.take_back(changes, record, "retract", f"{prompt.label} does not find it")
        written = [_add(intake, changes, draft) for draft in found.added]
    setting.events.tell_of(setting.scope, written)


def _add(intake: Intake, changes: Writing, draft: RecordDraft) -> Record:
    """Write what was compared already: also what another prompt did not find, and therefore took back."""
    ready = prepare(draft, intake.kinds, intake.by)
    if ready.trust == "quarantined":
        return intake.put(changes, ready, None, "quarantine", quarantine_reason(ready))
    return intake.put(changes, ready, None, "add")
