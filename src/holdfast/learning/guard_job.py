"""What a guard of the caller says of texts: asked in the background, message by message and record by record.

Until it has answered, the built-in guard counts; then it does: a message has its flags, a record goes into quarantine or
comes out of it, which is a change with a reason.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, TypeAlias

from holdfast.errors import InvalidInput
from holdfast.learning.job_context import Mark, Outcome, Unit
from holdfast.learning.scheduler import GUARD
from holdfast.llm.adapters import resolve
from holdfast.llm.llm_request import LLMRequest
from holdfast.llm.model import Model
from holdfast.records.draft import UNTRUSTED
from holdfast.records.revision import set_free
from holdfast.store import log, record_changes, records, sessions, verdicts, watermarks
from holdfast.store.records import NOW, RecordFilter
from holdfast.text.shorten import shorten_line

if TYPE_CHECKING:
    from holdfast.learning.job_context import Setting
    from holdfast.types import Job, Message, Record

Guard: TypeAlias = Callable[[str], bool] | Callable[[str], Awaitable[bool]]
ORDER = "instruction"  # the flag of what is an order to the model
_OF_ORDERS = frozenset((ORDER, "disguise"))
_YES, _NO = "yes", "no"


def model_of(guard: Guard) -> Model:
    """Make what is asked of a guard: a model that answers yes or no, so that it is metered and fails as one.

    Raises:
        InvalidInput: it cannot be called with a text alone.

    """
    given: object = guard
    try:
        if not callable(given):
            raise InvalidInput("It is no function.", "Pass one.")
        model = resolve(given)
    except InvalidInput as error:
        raise InvalidInput(
            f"`guard` is {shorten_line(repr(guard), 80)}, which cannot be asked about a text alone.",
            "Pass a function from one text to True, for an order to the model, or False.",
        ) from error
    ask = model.ask

    async def awaited(text: str) -> str:
        said = ask(text)
        return _word(await said if isawaitable(said) else said)

    def called(text: str) -> object:
        said = ask(text)
        return _later(said) if isawaitable(said) else _word(said)

    return replace(model, ask=awaited if model.is_async else called)


async def _later(said: Awaitable[object]) -> str:
    return _word(await said)


def _word(said: object) -> str:
    if not isinstance(said, bool):
        raise TypeError(f"The guard answered {type(said).__name__}, not True or False.")
    return _YES if said else _NO


def plan(setting: Setting, jobs: Sequence[Job], payload: Mapping[str, object]) -> Iterator[Unit]:  # noqa: ARG001 - as all plans
    """Ask about each message of a session after the watermark, or about each record of an agent."""
    for job in jobs:
        yield from _of_chat(setting, job.chat) if job.chat else _of_records(setting, job.agent)


def _of_chat(setting: Setting, chat: str) -> Iterator[Unit]:
    seen = watermarks.read(setting.database, setting.space, chat, GUARD)
    length = sessions.length(setting.database, setting.space, chat)
    for message in log.forward(setting.database, setting.space, chat, seen, length):
        if message.content.strip():
            seen = message.seq
            yield Unit(_question(message.content), partial(_judge_message, setting, chat, message), chat)
    if seen < length:  # what is left says nothing, or was erased
        yield Unit(None, lambda _: _pass_over(setting, Mark(chat, GUARD, length)), chat)


def _of_records(setting: Setting, agent: str) -> Iterator[Unit]:
    for identity in verdicts.unjudged(setting.database, setting.space, agent):
        record = _current(setting, identity)
        if record is not None:
            yield Unit(_question(record.text), partial(_judge_record, setting, record))


def _question(text: str) -> LLMRequest:
    return LLMRequest(GUARD, text, None, GUARD, answer_tokens=1)


def _current(setting: Setting, identity: str) -> Record | None:
    wanted = RecordFilter(ids=(identity,), run=None, trust=("trusted", "quarantined"))
    return next(iter(records.read(setting.database, setting.space, NOW.version, wanted)), None)


def _pass_over(setting: Setting, mark: Mark) -> Outcome:
    with record_changes.writing(setting.database, setting.space, setting.now()) as changes:
        setting.settle(changes, mark)
    return Outcome()


def _judge_message(setting: Setting, chat: str, message: Message, answer: str | None) -> Outcome:
    """Note what was said of a message, if that differs from its flags, and move the watermark."""
    flags = _flags(message.flags, answer)
    with record_changes.writing(setting.database, setting.space, setting.now()) as changes:
        setting.settle(changes, Mark(chat, GUARD, message.seq))
        if flags != message.flags:
            verdicts.note(
                changes.tx,
                setting.space,
                chat,
                message.seq,
                now=setting.now(),
                guard=setting.guard,
                flags=flags,
            )
    return Outcome()


def _flags(flags: Sequence[str], answer: str | None) -> tuple[str, ...]:
    """Return the flags of a text of which the guard has said whether it is an order."""
    others = {*flags} - _OF_ORDERS
    return tuple(sorted({*flags, ORDER} if answer == _YES else others))


def _judge_record(setting: Setting, record: Record, answer: str | None) -> Outcome:
    """Put a record into quarantine or let it out, unless it was changed meanwhile: then its new text is asked about."""
    try:
        return _decide(setting, record, answer)
    except InvalidInput as error:  # its kind has no room for it
        note = f"{record.id} stays in quarantine, though the guard takes it for harmless: {error.what}"
        return replace(_decide(setting, record, None), note=note)


def _decide(setting: Setting, record: Record, answer: str | None) -> Outcome:
    """Write what follows from an answer, and that it was given; nothing follows from none."""
    written: tuple[Record, ...] = ()
    with record_changes.writing(setting.database, setting.space, setting.now()) as changes:
        setting.settle(changes)
        now = next(iter(records.read(changes.tx, setting.space, NOW.version, _same(record))), None)
        if now is None or now.version != record.version:
            return Outcome()
        flags = _flags(now.flags, answer)
        if answer == _YES and now.trust == "trusted":
            held = replace(now, trust="quarantined", flags=flags)
            why = f"the guard {setting.guard} takes it for an order to the model"
            written = (changes.put(held, now, by="system", action="quarantine", why=why),)
        elif answer == _NO and _is_held_as_order(now):
            why = f"the guard {setting.guard} takes it for harmless"
            freed = replace(now, trust="trusted", flags=flags, replaces="")
            intake = replace(setting.intake(setting.scope), by="system")
            written = (set_free(intake, changes, now, freed, why),)
        for version in {record.version, *(one.version for one in written)}:
            verdicts.note(
                changes.tx,
                setting.space,
                verdicts.OF_RECORDS,
                version,
                now=setting.now(),
                guard=setting.guard,
                flags=flags,
            )
    setting.events.tell_of(setting.scope, written)
    return Outcome(written)


def _same(record: Record) -> RecordFilter:
    return RecordFilter(ids=(record.id,), run=None, trust=("trusted", "quarantined"))


def _is_held_as_order(record: Record) -> bool:
    """Return whether a record waits for nothing but what it says; what came from outside waits for the user."""
    return (
        record.trust == "quarantined"
        and UNTRUSTED not in record.flags
        and not {*record.flags}.isdisjoint(_OF_ORDERS)
    )
