"""`python -m benchmarks learn --llm NAME DATA`: how well a model learns, what takes it in, what it costs.

From each session that is labelled, and from each that plants orders, it learns as a worker would, each in a
memory of its own. What is found by its words or its quote counts as in `worthy`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.report import Report, Table
from benchmarks.worth import LABELS, Session
from benchmarks.worthy import Found, key, measured, messages_of, share
from holdfast.errors import InvalidInput
from holdfast.learning.results import Usage
from holdfast.learning.worker import FOR_ALL
from holdfast.llm.model import LLM
from holdfast.memory import Memory
from holdfast.settings import Learning
from holdfast.types import Message, Record

PLANTED = Path(__file__).parents[1] / "tests/data/planted/sessions.jsonl"
PARTS = ("worth", "planted")
_LEARNING = Learning(kinds=("observe", "episode", "reflect"), limits={})
_LEARNED = ("finding", "insight", "lesson", "fact")
_KINDS = (
    "decision",
    "instruction",
    "preference",
    "correction",
    "cause",
    "outcome",
    "environment",
    "personal",
)


@dataclass(slots=True)
class Bill:
    """What was asked of a model, and how many sessions failed."""

    calls: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0
    sessions: int = 0
    failed: int = 0

    def add(self, usage: Usage, *, failed: bool) -> None:
        """Add what a session took."""
        self.calls += usage.calls
        self.prompt_tokens += usage.prompt_tokens
        self.answer_tokens += usage.answer_tokens
        self.sessions += 1
        self.failed += failed

    def cost(self, price: tuple[float, float] | None) -> str:
        """Return the cost in dollars, given the price of a million tokens of prompts and of answers."""
        if price is None:
            return "unknown; give --price"
        return f"${(self.prompt_tokens * price[0] + self.answer_tokens * price[1]) / 1e6:,.2f}"


@dataclass(frozen=True, slots=True)
class Learner:
    """Learns from one session at a time."""

    llm: LLM
    progress: Callable[[str], None]
    bill: Bill = field(default_factory=Bill)

    def learned(self, name: str, messages: Sequence[Message | Mapping[str, Any]]) -> list[Record]:
        """Return what is known and trusted after a session.

        Raises:
            ModelFailed: the model has no key.
            InvalidInput: it fails for every session.

        """
        self.progress(f"learning from {name}")
        with Memory(":memory:", user="ada", learning=_LEARNING) as memory:
            chat = memory.chat("session")
            chat.append(list(messages))
            chat.end()
            done = memory.learning.work(llm=self.llm)
            left = [*done.postponed, *done.failed]
            for job in left:
                if job.reason in FOR_ALL:
                    raise InvalidInput(job.error, "Give a model that answers: --llm NAME.")
            self.bill.add(memory.learning.usage(), failed=bool(left))
            return memory.records()

    def observed(self, session: Session, read: set[int]) -> list[Found]:
        """Return what is learned from the messages of a session that were labelled."""
        messages = messages_of(session)
        found = []
        for one in self.learned(f"{session.source} {session.id}", messages):
            if one.kind in _LEARNED and one.messages:
                first, last = (messages[seq - 1].seq for seq in one.messages)
                if last - 1 in read:
                    found.append(Found(one.text, (first, last), one.kind, str(one.meta.get("quote", ""))))
        return found


def run(
    data: Path,
    llm: LLM,
    *,
    half: str = "held_out",
    only: Sequence[str] = (),
    price: tuple[float, float] | None = None,
    labels: Path = LABELS,
    planted: Path = PLANTED,
    progress: Callable[[str], None] = lambda _: None,
) -> Report:
    """Measure how well a model learns.

    Args:
        data: the folder of the labelled collections.
        llm: as for `memory.learning.work`.
        half: of the labelled sessions, "held_out" or "tune".
        only: names of `PARTS`; both when empty.
        price: of a million tokens of prompts and of answers, in dollars.
        labels: the folder of the labels.
        planted: the sessions that plant orders.
        progress: is told what is being done.

    Raises:
        ModelFailed, InvalidInput: the model has no key, or fails for every session.

    """
    learner, rows = Learner(llm, progress), list[tuple[str, str]]()
    if not only or "worth" in only:
        rows += _worth(data, half, learner, labels)
    if not only or "planted" in only:
        rows += _planted(planted, learner)
    bill = learner.bill
    rows += [
        ("sessions; failed", f"{bill.sessions}; {bill.failed}"),
        ("calls", f"{bill.calls:,}"),
        ("tokens of prompts; of answers", f"{bill.prompt_tokens:,}; {bill.answer_tokens:,}"),
        ("cost", bill.cost(price)),
    ]
    return Report(dict(rows), (Table("Learning with a model", ("what", "measured"), tuple(rows)),))


def _worth(data: Path, half: str, learner: Learner, labels: Path) -> Iterator[tuple[str, str]]:
    right, found = measured(data, half, learner.observed, labels)
    found["decisions and instructions"] = found["decision"] + found["instruction"]
    found["decisions and instructions found"] = found["decision found"] + found["instruction found"]
    yield f"right of learned, {half}", share(right, "all", "right")
    for name in ("all", "decisions and instructions", *_KINDS):
        yield f"found of {name}, {half}", share(found, name, "found")


def _planted(path: Path, learner: Learner) -> Iterator[tuple[str, str]]:
    """Count the sessions of which a trusted record has a sign of the order, and what should be known."""
    counts = Counter[str]()
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        records = learner.learned(f"planted {row['id']}", row["messages"])
        told = " ".join(key(f"{one.text} {json.dumps(dict(one.meta), default=str)}") for one in records)
        counts["orders"] += 1
        counts["orders kept"] += any(key(sign) in told for sign in row["signs"])
        counts["wanted"] += len(row["keep"])
        found = [Found(one.text, (1, 1), one.kind, str(one.meta.get("quote", ""))) for one in records]
        counts["wanted found"] += sum(any(one.carries(text) for one in found) for text in row["keep"])
    yield "planted orders kept as trusted", share(counts, "orders", "kept")
    yield "found of what stands beside them", share(counts, "wanted", "found")
