"""The caller's guard: called in the background with each message and each record.

Until it has answered, the verdict of the built-in guard applies, and then its own: it sets the flags of a
message, and puts a record into quarantine or releases it, which is a change with a reason.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from inspect import isawaitable
from typing import TypeAlias

from holdfast.errors import InvalidInput
from holdfast.learning.job_context import JobContext, UnitResult, Watermark, WorkUnit
from holdfast.llm.adapters import resolve
from holdfast.llm.llm_request import LLMRequest
from holdfast.llm.model import Model
from holdfast.records.draft import PROPOSED, UNTRUSTED
from holdfast.records.revision import set_free
from holdfast.store import log, records, verdicts
from holdfast.store.record_changes import Writing
from holdfast.store.records import NOW, RecordFilter
from holdfast.text.shorten import shorten_line
from holdfast.types import Message, Record

Guard: TypeAlias = Callable[[str], bool] | Callable[[str], Awaitable[bool]]
KIND = "guard"
ORDER = "instruction"  # the flag of an instruction to the model
_OF_ORDERS = frozenset((ORDER, "disguise"))
_YES, _NO = "yes", "no"


def model_of(guard: Guard) -> Model:
    """Return a guard as a model that answers yes or no, so that it is metered and fails as one.

    Raises:
        InvalidInput: it cannot be called with a text alone.

    """
    given: object = guard
    try:
        if not callable(given):
            raise InvalidInput("The guard is not callable.", "Pass a function.")
        model = resolve(given)
    except InvalidInput as error:
        raise InvalidInput(
            f"`guard` is {shorten_line(repr(guard), 80)}, which cannot be called with a text alone.",
            "Pass a function from one text to True, for an order to the model, or False.",
        ) from error

    async def awaited(verdict: Awaitable[object]) -> str:
        return _word(await verdict)

    def ask(text: str) -> object:
        verdict = model.ask(text)
        return awaited(verdict) if isawaitable(verdict) else _word(verdict)

    return replace(model, ask=ask)


def _word(verdict: object) -> str:
    if not isinstance(verdict, bool):
        raise TypeError(f"The guard answered {type(verdict).__name__}, not True or False.")
    return _YES if verdict else _NO


def plan(context: JobContext) -> Iterator[WorkUnit]:
    """Plan a request about each message of a chat after the watermark, or about each record of an agent."""
    for job in context.jobs:
        if job.chat:
            yield from _plan_chat(context, job.chat)
            continue
        for identity in verdicts.ids_without_verdicts(context.database, context.space, job.agent):
            for record in context.read_records(_by_id(identity)):
                yield WorkUnit(_request(record.text), partial(_judge_record, context, record))


def _plan_chat(context: JobContext, chat: str) -> Iterator[WorkUnit]:
    seen = context.watermark(chat, KIND)
    length = context.length(chat)
    for message in log.forward(context.database, context.space, chat, seen, length):
        if message.content.strip():
            seen = message.seq
            yield WorkUnit(_request(message.content), partial(_judge_message, context, chat, message), chat)
    if seen < length:
        # The rest is empty, or was erased.
        yield context.pass_over(chat, Watermark(chat, KIND, length))


def _request(text: str) -> LLMRequest:
    return LLMRequest(KIND, text, None, KIND, answer_tokens=1)


def _by_id(identity: str) -> RecordFilter:
    return RecordFilter(ids=(identity,), run=None, trust=("trusted", "quarantined"))


def _judge_message(context: JobContext, chat: str, message: Message, answer: str | None) -> UnitResult:
    """Store the verdict on a message, and move the watermark."""
    flags = _flags(message.flags, answer)
    with context.transaction() as changes:
        context.advance(changes, Watermark(chat, KIND, message.seq))
        # Also where the guards agree: a later version of the built-in one may not.
        _note(context, changes, chat, message.seq, flags)
    return UnitResult()


def _note(context: JobContext, changes: Writing, chat: str, seq: int, flags: Sequence[str]) -> None:
    verdicts.note(changes.tx, context.space, chat, seq, now=context.now(), guard=context.guard, flags=flags)


def _flags(flags: Sequence[str], answer: str | None) -> tuple[str, ...]:
    """Return the flags of a text after the guard's verdict whether it instructs the model."""
    return tuple(sorted({*flags, ORDER} if answer == _YES else {*flags} - _OF_ORDERS))


def _judge_record(context: JobContext, record: Record, answer: str | None) -> UnitResult:
    """Put a record into quarantine or release it, unless its text was changed meanwhile."""
    try:
        return _decide(context, record, answer)
    except InvalidInput as error:
        # Its kind has no room for it.
        note = f"{record.id} stays in quarantine, though the guard takes it for harmless: {error.what}"
        return replace(_decide(context, record, None), note=note)


def _decide(context: JobContext, record: Record, answer: str | None) -> UnitResult:
    """Write the change that follows from an answer, and the verdict; no change follows from None."""
    written: tuple[Record, ...] = ()
    with context.transaction() as changes:
        context.advance(changes)
        now = next(iter(records.read(changes.tx, context.space, NOW.version, _by_id(record.id))), None)
        if now is None or now.version != record.version:
            return UnitResult()
        flags = _flags(now.flags, answer)
        if answer == _YES and now.trust == "trusted":
            held = replace(now, trust="quarantined", flags=flags)
            why = f"the guard {context.guard} takes it for an order to the model"
            written = (changes.put(held, now, by="system", action="quarantine", why=why),)
        elif answer == _NO and _is_held_as_order(now):
            why = f"the guard {context.guard} takes it for harmless"
            freed = replace(now, trust="trusted", flags=flags, replaces="")
            written = (set_free(replace(context.intake, by="system"), changes, now, freed, why),)
        for version in {record.version, *(new.version for new in written)}:
            _note(context, changes, verdicts.OF_RECORDS, version, flags)
    context.events.tell_of(context.scope, written)
    return UnitResult(written)


def _is_held_as_order(record: Record) -> bool:
    """Return whether a record is in quarantine only for its text, not for an external source."""
    is_order = not {*record.flags}.isdisjoint(_OF_ORDERS)
    return record.trust == "quarantined" and not {UNTRUSTED, PROPOSED} & {*record.flags} and is_order
