"""Records and their wordings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from holdfast.types.reprs import brief
from holdfast.types.writers import Writer

Trust = Literal["trusted", "quarantined", "released"]


# The flag of a record that contradicts what somebody with more right said, or what was said later.
CONFLICT = "conflict"


@dataclass(frozen=True, slots=True)
class Wording:
    """Other words for a record: their writer, and the messages (first and last `seq`) of their chat."""

    text: str
    by: Writer = field(default="agent", kw_only=True)
    chat: str = field(default="", kw_only=True)
    messages: tuple[int, int] | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class Record:
    """One version of a record.

    `id` is the same in all versions; `version` is the number of the change that made this one, within its
    space. `target` is what a fact is about ("user", "env") or the compartment of a note ("run", "session",
    "plan"). `agent` is the agent that it belongs to, "" for a record of all agents of the user. `by` is the
    writer of the text, `source` says where it came from, `chat` and `messages` (first and last `seq`) where
    it was learned. `at` is when it was said: the time of the last of these messages, or of storing where
    there are none. `created` is when this version was stored; `since` and `until` are when it is true in the
    world. `evidence` counts how often it was said, `sources` names who else said it, the newest twenty, and
    `wordings` are the words in which it was said again, the newest last. `uses` and `used` are how often and
    when last a note was asked for. `flags` name what the guard found in the text, and "conflict" where it
    contradicts what somebody with more right said, or what was said later. A `pinned` one never expires and
    comes first in prompts. `conflicts` are the ids of earlier records that it contradicted when it was
    stored; `Memory.conflicts` has those that still do. `action` is what made this version ("add", "replace",
    "duplicate", "update", "retract", …) and `why` says more. Where several spaces are read, `space` says
    whose it is, as `reads` names it.
    """

    id: str
    kind: str
    text: str
    version: int = field(default=0, kw_only=True)
    target: str = field(default="", kw_only=True)
    category: str = field(default="", kw_only=True)
    tags: tuple[str, ...] = field(default=(), kw_only=True)
    meta: Mapping[str, object] = field(default_factory=dict, kw_only=True, hash=False)
    priority: int = field(default=5, kw_only=True)
    agent: str = field(default="", kw_only=True)
    source: str = field(default="", kw_only=True)
    sources: tuple[str, ...] = field(default=(), kw_only=True)
    evidence: int = field(default=1, kw_only=True)
    wordings: tuple[Wording, ...] = field(default=(), kw_only=True)
    by: Writer = field(default="agent", kw_only=True)
    run: str = field(default="", kw_only=True)
    chat: str = field(default="", kw_only=True)
    messages: tuple[int, int] | None = field(default=None, kw_only=True)
    at: datetime | None = field(default=None, kw_only=True)
    created: datetime | None = field(default=None, kw_only=True)
    since: datetime | None = field(default=None, kw_only=True)
    until: datetime | None = field(default=None, kw_only=True)
    trust: Trust = field(default="trusted", kw_only=True)
    flags: tuple[str, ...] = field(default=(), kw_only=True)
    pinned: bool = field(default=False, kw_only=True)
    conflicts: tuple[str, ...] = field(default=(), kw_only=True)
    replaces: str = field(default="", kw_only=True)
    retracted: bool = field(default=False, kw_only=True)
    action: str = field(default="add", kw_only=True)
    why: str = field(default="", kw_only=True)
    uses: int = field(default=0, kw_only=True)
    used: datetime | None = field(default=None, kw_only=True)
    space: str = field(default="", kw_only=True, compare=False)

    __repr__ = brief

    def valid(self, at: datetime) -> bool:
        """Return whether it is true in the world at a time: from `since` on, and before `until`."""
        return (self.since is None or self.since <= at) and (self.until is None or at < self.until)


@dataclass(frozen=True, slots=True)
class ConflictingRecords:
    """Two records that contradict each other and are both kept.

    `shown` is what prompts show: that of the writer with more right, else that said later. `why` says why the
    one that was stored second did not take the place of the first.
    """

    shown: Record
    other: Record
    why: str
