"""Jobs: learning that is left to do, runs, or is done."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

JobStatus = Literal["open", "running", "done", "failed"]


@dataclass(frozen=True, slots=True)
class Job:
    """A job of a worker: its task, its status, and what it has cost.

    `kind` is "observe" or "episode" (of a `chat`), "tidy" (the facts of an agent, or two `records` that may
    say the same), "reflect" (on the chats of an agent) or "expire" (what the rules of kinds let go). An open
    job is `due` from that time on; a running one belongs to its worker until then. `attempts` counts how
    often it was begun since it was last done. `reason` and `error` describe the last failure in a word and in
    a sentence. `calls` and tokens are what it has cost so far.
    """

    id: str
    kind: str
    records: tuple[str, ...]
    at: datetime
    status: JobStatus = field(default="open", kw_only=True)
    agent: str = field(default="", kw_only=True)
    chat: str = field(default="", kw_only=True)
    due: datetime | None = field(default=None, kw_only=True)
    attempts: int = field(default=0, kw_only=True)
    ended: datetime | None = field(default=None, kw_only=True)
    reason: str = field(default="", kw_only=True)
    error: str = field(default="", kw_only=True)
    calls: int = field(default=0, kw_only=True)
    prompt_tokens: int = field(default=0, kw_only=True)
    answer_tokens: int = field(default=0, kw_only=True)
