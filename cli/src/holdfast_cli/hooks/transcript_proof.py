"""The proof from a client's transcript that the answers of hooks reached the model."""

import json
import os
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import inf
from operator import attrgetter
from pathlib import Path
from typing import Literal

from holdfast.port.texts import estimate_tokens
from holdfast_cli.hooks.clients import client_of
from holdfast_cli.hooks.journal import HookRun

Evidence = Literal["sent", "answered", "stored", "cut", "missing", "unknown"]
"""How far a text got.

"sent": the transcript has it in a request to the model. "answered": the model answered after it. "stored":
the transcript has it, with nothing after it yet. "cut": the client replaced it, as it was too long.
"missing": the transcript does not have it. "unknown": there is no transcript to read.
"""

_NATIVE = {"session-start": "SessionStart", "prompt": "UserPromptSubmit"}
_SESSION = re.compile(r"[A-Za-z0-9_-]{1,100}")
_SESSIONS = 10  # the newest with a text that are looked at
_MOST = 16 << 20  # bytes of the end of a transcript
_EARLY, _LATE = 5.0, 60.0  # seconds of a row before and after the line of the journal
_UNLIKE = 0.02  # share of its tokens by which a row may differ from what was answered
_STAMP = re.compile(rb'"timestamp": ?"([0-9TZ:.+-]{1,40})"')
_CUT = "<persisted-output>"
_at = attrgetter("at")
_CONTEXT, _LATER = b"hook_additional_context", (b"api-request-blob", b'"assistant"')


@dataclass(frozen=True, slots=True)
class Delivery:
    """A text that a hook answered with, and how far it got."""

    client: str
    session: str
    event: str
    at: float
    tokens: int
    evidence: Evidence


@dataclass(slots=True)
class _Row:
    """A row of a transcript that has a context of a hook."""

    event: str
    at: float
    text: str
    evidence: Evidence

    def fits(self, run: HookRun) -> bool:
        """Return whether it may be what a call answered, by its event and size.

        Other hooks of the same event leave rows as well.
        """
        if self.event != _NATIVE[run.event] or self.evidence == "cut":
            return self.event == _NATIVE[run.event]
        return abs(estimate_tokens(self.text) - run.tokens) <= max(2, run.tokens * _UNLIKE)


def deliveries(runs: Sequence[HookRun], home: Path) -> list[Delivery]:
    """Return the deliveries of the texts of the newest sessions, oldest first.

    Only Claude Code keeps a transcript that tells; of the others nothing is known.
    """
    texts = [run for run in runs if run.tokens and run.event in _NATIVE]
    newest = list(dict.fromkeys((run.client, run.session) for run in reversed(texts)))[:_SESSIONS]
    result: list[Delivery] = []
    for client, session in newest:
        own = [run for run in texts if (run.client, run.session) == (client, session)]
        result += _of_session(own, _transcript(client, session, home))
    return sorted(result, key=lambda delivery: delivery.at)


def _of_session(runs: Sequence[HookRun], transcript: Path | None) -> Iterator[Delivery]:
    since, rows = (inf, []) if transcript is None else _rows(transcript)
    rows.sort(key=_at)
    for run in runs:
        delivery = Delivery(run.client, run.session, run.event, run.at, run.tokens, "unknown")
        if run.at < since:
            yield delivery
            continue
        first = bisect_left(rows, run.at - _EARLY, key=_at)
        last = bisect_right(rows, run.at + _LATE + run.ms / 1000, key=_at)
        fitting = [row for row in rows[first:last] if row.fits(run)]
        if not fitting:
            yield replace(delivery, evidence="missing")
            continue
        nearest = min(fitting, key=lambda row: abs(row.at - run.at))
        rows.remove(nearest)
        yield replace(delivery, evidence=nearest.evidence)


def _transcript(client: str, session: str, home: Path) -> Path | None:
    """Return the transcript of a session, None if it is not there."""
    if client != "claude-code" or not _SESSION.fullmatch(session):
        return None
    projects = client_of(client).folder_in(home) / "projects"
    try:
        return next((path for path in sorted(projects.glob(f"*/{session}.jsonl")) if path.is_file()), None)
    except OSError:
        return None


def _rows(transcript: Path) -> tuple[float, list[_Row]]:
    """Return the rows with contexts of hooks, and the time from which on the transcript was read.

    The time is infinite if the file cannot be read, and later than its beginning if it is long.
    """
    rows: list[_Row] = []
    try:
        with transcript.open("rb") as stream:
            start = max(0, stream.seek(0, os.SEEK_END) - _MOST)
            stream.seek(start)
            content = stream.read(_MOST)
    except OSError:
        return inf, rows
    first = _STAMP.search(content) if start else None
    since = 0.0 if not start else inf if first is None else _time(first[1].decode()) + _LATE
    waiting: list[_Row] = []
    for line in content.splitlines():
        # Most of a transcript says nothing of them.
        if _CONTEXT in line or (waiting and any(mark in line for mark in _LATER)):
            new_rows = _read_line(line, waiting)
            rows += new_rows
            waiting = [row for row in (*waiting, *new_rows) if row.evidence == "stored"]
    return since, rows


def _time(text: str) -> float:
    """Return a time of a transcript in seconds; one that is none never comes."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return inf


def _read_line(line: bytes, waiting: Sequence[_Row]) -> list[_Row]:
    """Return the rows of a line, and mark those before it that it proves: a request, then its answer."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return []
    if not isinstance(entry, dict):
        return []
    if entry.get("type") == "api-request-blob":
        sent = "\n".join(_texts(entry.get("message")))
        for row in waiting:
            row.evidence = "sent" if row.text in sent else row.evidence
    elif entry.get("type") == "assistant" and entry.get("isSidechain") is not True:
        for row in waiting:
            row.evidence = "answered"
    return list(_contexts(entry)) if entry.get("type") == "attachment" else []


def _contexts(entry: dict[str, object]) -> Iterator[_Row]:
    """Yield the contexts of a row, one for each hook that gave one."""
    inner = entry.get("attachment")
    if not isinstance(inner, dict) or inner.get("type") != "hook_additional_context":
        return
    content, event = inner.get("content"), inner.get("hookEvent")
    at = _time(str(entry.get("timestamp")))
    if isinstance(event, str) and isinstance(content, list):
        for text in content:
            if isinstance(text, str) and text:
                yield _Row(event, at, text, "cut" if _CUT in text[:100] else "stored")


def _texts(message: object) -> Iterator[str]:
    content = message.get("content") if isinstance(message, dict) else None
    for part in content if isinstance(content, list) else [content]:
        text = part.get("text") if isinstance(part, dict) else part
        if isinstance(text, str):
            yield text
