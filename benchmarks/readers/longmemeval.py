"""LongMemEval: each question has a history of its own, of 40 to 500 sessions with an assistant.

`xiaowu0162/LongMemEval`, `longmemeval_s.json`, `_m` or `_oracle`: a list of `{question_id, question_type,
question, haystack_session_ids, haystack_dates, haystack_sessions: [[{role, content}]], answer_session_ids}`.
The 30 questions of abstention (`…_abs`) have no session that answers them, and are left out as there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from itertools import zip_longest
from pathlib import Path

from benchmarks.datasets import (
    Corpus,
    Question,
    Reader,
    Session,
    dicts_of,
    is_dict_with,
    moment,
    said,
    texts_of,
)
from holdfast_cli.formats.json_values import list_of, text_of

_TIME = re.compile(r"(?P<year>\d{4})/(?P<month>\d\d)/(?P<day>\d\d)(?:.*?(?P<hour>\d\d?):(?P<minute>\d\d))?")
_TURN = timedelta(seconds=10)


def _knows(value: object) -> bool:
    return isinstance(value, list) and is_dict_with(next(iter(value), None), "haystack_sessions", "question")


def _read(path: Path, value: object) -> Iterator[Corpus]:
    for number, one in enumerate(dicts_of(value), 1):
        name = text_of(one.get("question_id")) or f"{path.stem}:{number}"
        sessions = tuple(_sessions(one))
        known = {session.id for session in sessions}
        gold = tuple(id for id in texts_of(one.get("answer_session_ids")) if id in known)
        kind = text_of(one.get("question_type"))
        asked = Question(text_of(one.get("question")), kind, () if name.endswith("_abs") else gold)
        yield Corpus(name, sessions, (asked,), "session", (path,))


def _sessions(one: dict[str, object]) -> Iterator[Session]:
    """Yield the sessions in the order of their times, which that of the file need not be."""
    found = []
    parts = (list_of(one.get(f"haystack_{part}")) for part in ("session_ids", "dates", "sessions"))
    for id, date, turns in zip_longest(*parts):
        start = moment(_TIME, text_of(date))
        messages = tuple(
            message
            for index, turn in enumerate(dicts_of(turns))
            for message in said(
                turn.get("role"), text_of(turn.get("content")), at=start + index * _TURN if start else None
            )
        )
        found.append((text_of(date), Session(text_of(id), messages)))
    yield from (session for _, session in sorted(found, key=lambda pair: pair[0]))


READER = Reader("LongMemEval", _knows, _read)
