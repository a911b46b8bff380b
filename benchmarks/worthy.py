"""How much of what is worth keeping is learned by a model, and how much of what is learned is."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.worth import LABELS, Label, Session, read_labelled, read_labels
from holdfast import Message
from holdfast.types import Range

_WORD = re.compile(r"\w+")
_LONG = 8  # words of a statement of which some may be missing
_MOST = 0.85


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


class Found(NamedTuple):
    """Something that was learned: its text, its messages, its kind, and the words that it rests on."""

    text: str
    messages: Range
    kind: str
    quote: str = ""

    def carries(self, statement: str) -> bool:
        """Return whether it has a statement's words, or rests on words of it."""
        own, words = key(self.quote), key(statement)
        rests = bool(self.quote) and (own in words or words in own)
        return rests or carries(self.text, statement)


def measured(
    data: Path,
    half: str,
    learn: Callable[[Session, set[int]], Sequence[Found]],
    folder: Path = LABELS,
) -> tuple[Counter[str], Counter[str]]:
    """Count what is learned of a half, and what of it is right, by source and by kind; then what is found.

    A text is right if it carries a statement that is worth keeping, also one that was said before; what the
    labels do not agree on counts neither way. What is found counts only statements that are new.
    """
    labels = defaultdict(list)
    for label in read_labels(folder):
        labels[label.source, label.session].append(label)
    precision, recall = Counter[str](), Counter[str]()
    for session, judged in read_labelled(data, folder):
        if judged.half == half:
            found = learn(session, {message for message, _, _ in judged.statements})
            _count(session, labels[session.source, session.id], found, precision, recall)
    return precision, recall


def _count(
    session: Session,
    labels: Sequence[Label],
    found: Sequence[Found],
    precision: Counter[str],
    recall: Counter[str],
) -> None:
    texts = {said.position: said.text for said in session.messages}
    carried: dict[int, list[Label]] = {}
    for number, one in enumerate(found):
        first, last = one.messages[0] - 1, one.messages[1] - 1
        near = [label for label in labels if first <= label.message <= last]
        carried[number] = [
            label for label in near if one.carries(texts[label.message][label.start : label.end])
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


def share(counts: Counter[str], name: str, what: str) -> str:
    """Return what part of what was counted by a name is so."""
    part, whole = counts[f"{name} {what}"], counts[name]
    return f"{part} of {whole}, {part / whole:.0%}" if whole else "none"
