"""Relearning: what another prompt, or model, makes of the same words, beside what is stored; and the change to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.errors import HoldfastError, InvalidInput, ModelFailed
from holdfast.events import Call
from holdfast.kinds import FIL
from holdfast.learn import extraction, observe
from holdfast.learn.extraction import Source
from holdfast.learn.prompting import Prompt, load
from holdfast.learn.question import Question, Unreadable
from holdfast.learn.results import Relearning
from holdfast.learn.setting import Setting
from holdfast.store import log, records, sessions
from holdfast.store.records import NOW, Wanted, Writing

if TYPE_CHECKING:
    from holdfast.types import Record

KINDS = ("observations",)
_FROM_SESSIONS = (
    "observe",
    "decisions",
)  # how what is learned anew was learned: the first words of `meta["learned"]`

Ask = Callable[[Question, str], str]


@dataclass(frozen=True, slots=True)
class Difference:
    """What a session gives now, beside what it gave: what is new, what is no more, and how many say the same."""

    added: tuple[Record, ...]
    removed: tuple[Record, ...]
    kept: int


def relearn(
    setting: Setting, kind: str, version: str | None, ask: Ask, calls: list[Call], *, apply: bool
) -> Relearning:
    """Learn anew from all sessions that observations came from; see `Memory.relearn`."""
    if kind not in KINDS:
        raise InvalidInput(f"{kind!r} cannot be learned anew.", f"Use one of {', '.join(KINDS)}.")
    prompt = load(extraction.KIND, version)
    added: list[Record] = []
    removed: list[Record] = []
    kept, chats, failed = 0, [], {}
    for chat, stored in learned_from(setting).items():
        own = setting.of(stored[0].agent)
        try:
            found = difference(own, chat, stored, prompt, ask)
            if apply:
                exchange(own, found, prompt)
        except HoldfastError as error:
            failed[chat] = str(error)
            if isinstance(error, ModelFailed) and error.reason in ("authentication", "limit"):
                break  # the next ones would fail as well
            continue
        chats.append(chat)
        added += found.added
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


def learned_from(setting: Setting) -> dict[str, list[Record]]:
    """Find the sessions that observations were learned from in the background, each with those that are current.

    What the user wrote, changed or released is not among them: it is not to be learned anew.
    """
    agents = (setting.scope.agent, "") if setting.scope.agent else None
    wanted = Wanted(kinds=FIL, agents=agents, trust=("trusted", "quarantined"))
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
    last = sessions.length(setting.database, setting.space, chat)
    source = Source(chat, 1, last, "", "", "session", is_news=False)
    messages = log.read(setting.database, setting.space, chat)
    drafts: list[Record] = []
    for part, own in extraction.parts_of(setting, messages):
        question = observe.question(part, prompt, step="", type="session")
        answer = ask(question, chat)
        try:
            drafts += extraction.understood(setting, source, part, own, prompt, answer)[0]
        except Unreadable as why:
            answer = ask(question.again(answer, why), chat)
            try:
                drafts += extraction.understood(setting, source, part, own, prompt, answer)[0]
            except Unreadable as still:
                raise ModelFailed(
                    f"The model answered twice what cannot be used: {still}",
                    "Try again, or use another model.",
                    reason="answer",
                ) from still
    return _compared(setting, drafts, stored)


def _compared(setting: Setting, drafts: Sequence[Record], stored: Sequence[Record]) -> Difference:
    intake = setting.intake(setting.scope)
    left = list(stored)
    added: list[Record] = []
    kept = 0
    for draft in drafts:
        near = [one for one in left if one.kind == draft.kind]
        verdict = intake.classify(draft.text, [one.text for one in near])
        if verdict.relation == "duplicate" and verdict.place is not None:
            left.remove(near[verdict.place])
            kept += 1
        elif not _is_known(setting, draft, [*stored, *added]):
            added.append(draft)
    return Difference(tuple(added), tuple(left), kept)


def _is_known(setting: Setting, draft: Record, beside: Sequence[Record]) -> bool:
    """Say whether something else that is known says so, whichever session it came from, or the same answer does."""
    intake = setting.intake(setting.scope)
    gone = {one.id for one in beside if one.id}
    others = [one for one in intake.similar(draft.text, draft.kind, 4) if one.id not in gone]
    others += [one for one in beside if one.kind == draft.kind]
    return intake.classify(draft.text, [one.text for one in others]).relation == "duplicate"


def exchange(setting: Setting, found: Difference, prompt: Prompt) -> None:
    """Take back what is no more and add what is new, in one transaction, which `undo` takes back as one."""
    if not found.added and not found.removed:
        return
    intake = setting.intake(setting.scope)

    def take_back(changes: Writing) -> None:
        for record in found.removed:
            if records.is_current(changes.tx, setting.space, record):
                intake.take_back(changes, record, "retract", f"{prompt.label} does not find it")

    written = intake.remember(found.added, merge=False, also=take_back)
    setting.events.tell_of(setting.scope, written)
