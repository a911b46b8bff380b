"""The changes of records and summaries."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from holdfast.types.integrity import Erasure
from holdfast.types.writers import Writer


@dataclass(frozen=True, slots=True)
class Change:
    """One version of a space: a change of a record, its writer, its time, the text before and after.

    `agent` is the agent that the record belongs to, "" for one of all agents. A compaction (the action
    "compact", of the kind "summary", one for each summary that it wrote, with its `id`) and an erasure (the
    action "erase", of the kind "erasure", with the `id` of its receipt) are not versions: their `version` is
    0, they have no texts, and `why` describes them. Nor are those of the kind "branch", which take a chat to
    another branch (the actions "rewind", "edit", "regenerate", "switch" and "undo"): `before` and `after`
    name the last messages of the two. `before` and `after` are None where there was, or is, no such record.
    `batch` is the first version of the call that made this change; `undo` takes back all changes of a call.
    `said` are the words of a duplicate, "" of any other change.
    """

    version: int
    action: str
    kind: str
    id: str
    before: str | None
    after: str | None
    by: Writer
    chat: str
    at: datetime
    why: str
    batch: int = 0
    said: str = ""
    agent: str = field(default="", kw_only=True)
    erasure: Erasure | None = field(default=None, kw_only=True)
