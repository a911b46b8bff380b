"""The echo filter: finds what an agent only repeats of its own memory, however it is worded."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.learning import echo_match
from holdfast.learning.job_context import JobContext
from holdfast.store import log, records
from holdfast.store.records import RecordFilter
from holdfast.text.references import read_reference
from holdfast.types import Message, Range

_QUERY = 400  # characters of a text by which earlier messages are looked up
_READ = 4_000  # characters of a message that are compared: longer ones are logs or files


class EchoFilter:
    """The texts that an agent had before it: those in every prompt, those recalled, and earlier messages."""

    def __init__(self, context: JobContext, messages: Sequence[Message]) -> None:
        self._context = context
        self._shown = {message.seq: message.shown for message in messages if message.shown}
        self._times = {message.seq: message.at for message in messages}
        kinds = tuple(kind.name for kind in context.kinds.values() if kind.heading)
        agents = tuple(dict.fromkeys((context.scope.agent, "")))
        self._in_prompt = [
            record.text for record in context.read_records(RecordFilter(kinds=kinds, agents=agents))
        ]
        self._texts: dict[str, list[str]] = {}

    def repeats(self, text: str, span: Range | None, speaker: str) -> bool:
        """Return whether a text only repeats them; no text of the user does."""
        if speaker == "user":
            return False
        first, last = span or (0, 0)
        recalled = [
            one
            for seq, refs in self._shown.items()
            if first <= seq <= last
            for ref in refs
            for one in self._read(ref)
        ]
        if self._restates(text, [*self._in_prompt, *recalled]):
            return True
        began = self._times.get(first)
        if began is None:
            return False
        return self._restates(text, self._context.said_before(self._context.scope, text[:_QUERY], began))

    def _restates(self, text: str, shown: Sequence[str]) -> bool:
        return echo_match.restates(text, [one[:_READ] for one in shown])

    def _read(self, ref: str) -> list[str]:
        """Return the texts of a reference, to a message or to all versions of a record."""
        if ref in self._texts:
            return self._texts[ref]
        database, scope = self._context.database, self._context.scope
        message = read_reference(ref)
        found: list[str] = []
        for space in dict.fromkeys((scope.space, scope.shared.space)):
            if message and message.first == message.last:
                chat, first, last = message
                found += [
                    one.content for one in log.read(database, space, chat, after=first - 1, before=last + 1)
                ]
            else:
                found += [record.text for record in records.versions_of(database, space, ref)]
        self._texts[ref] = found
        return found
