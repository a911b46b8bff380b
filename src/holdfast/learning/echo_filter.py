"""What an agent was told by its own memory when it said something: that is no news, however it put it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.learning import echo_match
from holdfast.learning.throttle import rest
from holdfast.store import log, records
from holdfast.store.records import NOW, RecordFilter
from holdfast.text.references import read_reference

if TYPE_CHECKING:
    from holdfast.learning.job_context import Setting
    from holdfast.types import Message, Range

_LOOKED_UP = 400  # characters of a text by which what was said before is looked up
_READ = 4_000  # characters of a message that are compared: what is longer is a log or a file


class Told:
    """What stood before an agent when it said some messages: what every prompt shows, what was recalled, what was said before."""

    def __init__(self, setting: Setting, messages: Sequence[Message]) -> None:
        self._setting = setting
        self._shown = {message.seq: message.shown for message in messages if message.shown}
        self._times = {message.seq: message.at for message in messages}
        kinds = tuple(kind.name for kind in setting.kinds.values() if kind.heading)
        agents = tuple(dict.fromkeys((setting.scope.agent, "")))
        found = records.read(
            setting.database, setting.space, NOW.version, RecordFilter(kinds=kinds, agents=agents)
        )
        self._known = [record.text for record in found]
        self._texts: dict[str, list[str]] = {}

    def says(self, text: str, span: Range | None, speaker: str) -> bool:
        """Say whether a text that the user did not say only restates that."""
        if speaker == "user":
            return False
        first, last = span or (0, 0)
        recalled = [ref for seq, refs in self._shown.items() if first <= seq <= last for ref in refs]
        if self._restates(text, [*self._known, *self._read(recalled)]):
            return True
        began = self._times.get(first)
        if began is None:
            return False
        rest()
        return self._restates(text, self._setting.earlier(self._setting.scope, text[:_LOOKED_UP], began))

    def _restates(self, text: str, shown: Sequence[str]) -> bool:
        return echo_match.restates(text, [one[:_READ] for one in shown])

    def _read(self, refs: Sequence[str]) -> list[str]:
        for ref in refs:
            if ref not in self._texts:
                self._texts[ref] = self._text(ref)
        return [text for ref in refs for text in self._texts[ref]]

    def _text(self, ref: str) -> list[str]:
        """Read what `Message.shown` names: all versions of a record, or a message, of the user or of the tenant."""
        database, scope = self._setting.database, self._setting.scope
        said_in = read_reference(ref)
        found: list[str] = []
        for space in dict.fromkeys((scope.space, scope.shared.space)):
            if said_in and said_in.first == said_in.last:
                chat, first, last = said_in
                said = log.read(database, space, chat, after=first - 1, before=last + 1)
                found += [message.content for message in said]
            else:
                found += [record.text for record in records.versions_of(database, space, ref)]
        return found
