"""REALTALK: three weeks of messages between two real people, with questions as LoCoMo has them.

`danny911kr/REALTALK`, `data/Chat_1_….json`: `session_1` is a list of `{clean_text, speaker, dia_id: "D1:1",
date_time: "29.12.2023, 00:51:12"}`, `qa` a list of `{question, answer, evidence: ["D1:4"], category}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.datasets import Corpus, Reader, Session, is_dict_with, moment, said
from benchmarks.readers.locomo import caption, questions_in, sessions_in
from holdfast_cli.formats.json_values import dict_of, text_of

_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "commonsense"}
_TIME = re.compile(r"(?P<day>\d\d?)\.(?P<month>\d\d?)\.(?P<year>\d{4}), (?P<hour>\d\d?):(?P<minute>\d\d)")


def _knows(value: object) -> bool:
    return is_dict_with(value, "qa", "session_1")


def _read(path: Path, value: object) -> Iterator[Corpus]:
    chat = dict_of(value)
    sessions = tuple(
        Session(
            name,
            tuple(
                message
                for turn in turns
                for message in said(
                    "user",
                    "\n".join(filter(None, (text_of(turn.get("clean_text")), caption(turn)))),
                    text_of(turn.get("dia_id")),
                    name=turn.get("speaker"),
                    at=moment(_TIME, text_of(turn.get("date_time"))),
                )
            ),
        )
        for name, turns in sessions_in(chat)
    )
    yield Corpus(path.stem, sessions, questions_in(chat["qa"], sessions, _CATEGORIES), files=(path,))


READER = Reader("REALTALK", _knows, _read)
