"""The format of the lines of an extractive summary, and its reader, which returns them as passages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from holdfast.compaction.work_steps import read_steps
from holdfast.messages.passages import EXPAND, LONGEST_NAME, STEPS, Passage

UNDATED = "Undated"
NOTHING = "(nothing that can be put into words)"
# Begins a line without a speaker.
BARE = "- "
# A separator of sentences that would run into each other.
JOINED = " · "
MONTHS = "January February March April May June July August September October November December".split()

_DAY_LINE = re.compile(rf"(\d{{1,2}}) ({'|'.join(MONTHS)}) (\d{{1,4}})")
_SPEAKER_LINE = re.compile(rf"([^:\n]{{1,{LONGEST_NAME}}}?)(?: #(\d{{1,9}}))?: (\S.*)")
_NUMBERED_LINE = re.compile(rf"(?:[^:\n]{{1,{LONGEST_NAME}}} )?#\d{{1,9}}: \S")
_NUMBERED = re.compile(r"#(\d{1,9}): (\S.*)")


def label(passage: Passage, *, same: bool) -> str:
    """Return the label before the words of a passage; `same` where its speaker spoke the line before."""
    if not passage.number:
        return BARE if same else f"{passage.speaker}: "
    return f"#{passage.number}: " if same else f"{passage.speaker} #{passage.number}: "


def from_summary(text: str) -> list[Passage]:
    """Return the passages of a summary that `extract` wrote; of any other text, its lines without a speaker.

    The line of topics to expand for is dropped: a new summary makes its own.
    """
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and line != NOTHING and not line.startswith(EXPAND.strip())]
    if not lines:
        return []
    ours = lines[0] == UNDATED or _DAY_LINE.fullmatch(lines[0]) is not None
    return list(_read_back(lines)) if ours else [Passage(line.removeprefix(BARE)) for line in lines]


def is_work(text: str) -> bool:
    """Return whether a summary is one of a work session: its lines name messages."""
    return any(_NUMBERED_LINE.match(line) for line in text.splitlines())


def _read_back(lines: Sequence[str]) -> Iterator[Passage]:
    at: datetime | None = None
    speaker = ""
    for line in lines:
        if line == UNDATED or _DAY_LINE.fullmatch(line):
            at, speaker = _day(line), ""
        elif read_steps(line):
            yield Passage(line, "", at, STEPS)
        elif match := _NUMBERED.fullmatch(line):
            yield Passage(_split_joined(match[2]), speaker, at, speaker, int(match[1]))
        elif not line.startswith(BARE) and (match := _SPEAKER_LINE.fullmatch(line)):
            speaker = match[1]
            text = _split_joined(match[3]) if match[2] else match[3]
            yield Passage(text, speaker, at, speaker, int(match[2] or 0))
        else:
            yield Passage(line.removeprefix(BARE), speaker, at, speaker)


def _split_joined(text: str) -> str:
    """Return the joined sentences of a work session on lines of their own."""
    return text.replace(JOINED, "\n")


def _day(line: str) -> datetime | None:
    match = _DAY_LINE.fullmatch(line)
    if match is None:
        return None
    try:
        return datetime(int(match[3]), MONTHS.index(match[2]) + 1, int(match[1]), tzinfo=UTC)
    except ValueError:
        return None
