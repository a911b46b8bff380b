"""Hits as they are displayed: with credentials masked, and the verdicts on long messages kept."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from holdfast.errors import Denied, Unavailable
from holdfast.safety import guard
from holdfast.store import verdicts
from holdfast.store.verdicts import Verdict
from holdfast.types.messages import are_flags_unread

if TYPE_CHECKING:
    from holdfast.store.database import Database
    from holdfast.types import Hit, Scope

# Characters from which on the guard takes longer than a look into the database.
_LONG = 20_000
_MARK = re.compile(r"\[redacted: [^]\n]*\]")


class Display:
    """Mask hits for a scope; `keep` then stores the new verdicts on long messages for other processes."""

    def __init__(self, database: Database, scope: Scope) -> None:
        self._database, self._scope = database, scope
        self._new: defaultdict[str, list[tuple[str, int, str, Verdict]]] = defaultdict(list)

    def mask(self, hits: Iterable[Hit]) -> list[Hit]:
        """Return hits with the credentials in them masked."""
        return list(map(self._masked, hits))

    def _masked(self, hit: Hit) -> Hit:
        if hit.source != "message" or len(hit.text) < _LONG or not are_flags_unread(hit):
            return guard.masked_hit(hit)
        space = self._scope.named(hit.space).space if hit.space else self._scope.space
        known = verdicts.kept(self._database, space, hit.chat, hit.seq, guard.version())
        if known is not None:
            shown = guard.masked_hit(replace(hit, text="", flags=known.flags))
            return replace(shown, text=known.masked(hit.text))
        shown = guard.masked_hit(hit)
        verdict = Verdict(hit.flags, _masks(hit.text, shown.text))
        if verdict.masked(hit.text) == shown.text:
            self._new[space].append((hit.chat, hit.seq, hit.id, verdict))
        return shown

    def keep(self) -> None:
        """Store the new verdicts, outside of a read; who may only read finds them again."""
        for space, new in self._new.items():
            with suppress(Denied, Unavailable):
                verdicts.keep(self._database, space, guard.version(), new)
        self._new.clear()


def _masks(text: str, masked: str) -> list[tuple[int, int, str]]:
    """Return the places of a text that are replaced in the masked text, and by what.

    A place may begin or end beside the credential, where the words between two of them are found in it too.
    """
    masks: list[tuple[int, int, str]] = []
    marks = list(_MARK.finditer(masked)) if masked != text else []
    at = begin = 0
    for mark, following in zip_longest(marks, marks[1:]):
        at += mark.start() - begin
        begin = mark.end()
        end = text.find(masked[begin : following.start()], at) if following else text.rfind(masked[begin:])
        masks.append((at, end, mark[0]))
        at = end
    return masks
