"""How much of what is worth keeping is learned without a model, and how much of what is learned is."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from benchmarks.worth import Label, Session, read_labelled, read_labels
from holdfast import Message
from holdfast.learning.learned_statements import LearnedStatement, learned_statements

_WORD = re.compile(r"\w+")
_LONG = 8  # words of a statement of which some may be missing
_MOST = 0.85
_SOURCES = ("agent", "tau", "locomo", "realmem")


def messages_of(session: Session) -> list[Message]:
    """Return the messages of a session as a chat has them."""
    return [
        Message(
            "user" if said.role == "user" else "assistant",
            said.text,
            name=said.speaker or None,
            seq=said.position + 1,
        )
        for said in session.messages
        if said.text.strip()
    ]


def key(text: str) -> str:
    """Return the words of a text, between spaces."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def carries(learned: str, statement: str) -> bool:
    """Return whether a learned text has a statement's words, or is the greater part of it.

    A text is stored without markup, so that of a longer statement some words may be missing.
    """
    text, words = key(learned), key(statement)
    if words in text or (text in words and 2 * len(text) >= len(words)):
        return True
    wanted, has = words.split(), set(text.split())
    return len(wanted) >= _LONG and sum(word in has for word in wanted) >= _MOST * len(wanted)


def learned_of(session: Session, read: set[int]) -> list[LearnedStatement]:
    """Return what is learned from the messages of a session that were labelled."""
    found = learned_statements(messages_of(session))
    return [one for one in found if one.messages[1] - 1 in read]


def measured(data: Path, half: str) -> tuple[Counter[str], Counter[str]]:
    """Count what is learned of a half, and what of it is right, by source and by kind; then what is found.

    A text is right if it carries a statement that is worth keeping, also one that was said before; what the
    labels do not agree on counts neither way. What is found counts only statements that are new.
    """
    labels = defaultdict(list)
    for label in read_labels():
        labels[label.source, label.session].append(label)
    precision, recall = Counter[str](), Counter[str]()
    for session, judged in read_labelled(data):
        if judged.half == half:
            read = {message for message, _, _ in judged.statements}
            found = learned_of(session, read)
            _count(session, labels[session.source, session.id], found, precision, recall)
    return precision, recall


def _count(
    session: Session,
    labels: Sequence[Label],
    found: Sequence[LearnedStatement],
    precision: Counter[str],
    recall: Counter[str],
) -> None:
    texts = {said.position: said.text for said in session.messages}
    carried: dict[int, list[Label]] = {}
    for number, one in enumerate(found):
        first, last = one.messages[0] - 1, one.messages[1] - 1
        near = [label for label in labels if first <= label.message <= last]
        carried[number] = [
            label for label in near if carries(one.text, texts[label.message][label.start : label.end])
        ]
        if carried[number] and not any(label.settled for label in carried[number]):
            continue
        for name in ("all", session.source, one.kind):
            precision[name] += 1
            precision[f"{name} right"] += bool(carried[number])
    hit = {id(label) for some in carried.values() for label in some}
    for label in labels:
        if label.settled and not label.repeat:
            for name in ("all", session.source, label.kinds[0]):
                recall[name] += 1
                recall[f"{name} found"] += id(label) in hit


def report(data: Path) -> list[list[str]]:
    """Return the precision and recall of both halves, by source and by kind, as the rows of a table."""
    halves = {half: measured(data, half) for half in ("tune", "held_out")}
    kinds = sorted({name for _, recall in halves.values() for name in recall if " " not in name})
    rows = [["", "right of learned, tune", "held out", "found of new, tune", "held out"]]
    for name in ("all", *_SOURCES, *(kind for kind in kinds if kind not in ("all", *_SOURCES))):
        right = [_share(precision, name, "right") for precision, _ in halves.values()]
        found = [_share(recall, name, "found") for _, recall in halves.values()]
        rows.append([name, *right, *found])
    return rows


def _share(counts: Counter[str], name: str, what: str) -> str:
    part, whole = counts[f"{name} {what}"], counts[name]
    return f"{part} of {whole}, {part / whole:.0%}" if whole else "none"
