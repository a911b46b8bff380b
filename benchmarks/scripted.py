"""A model that follows a script: it answers all that learning asks with what stands in the question.

It is deterministic, and chooses and words nothing as a model would: it repeats sentences of the transcript,
names the messages they come from, and quotes them. So what it costs and what is stored twice can be measured
and tested; how well anything is learned cannot.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from holdfast.text.sentences import sentences

OBSERVATIONS = 8  # in one answer at most, about as many as models find
_SHORTEST, _LONGEST = 40, 240  # characters of a sentence that is worth repeating
_QUOTE = 60  # characters
_SAME = 0.6  # the share of their words from which on two texts say the same
_FILES = 8

_FRAME = re.compile(r"^<(\w+)[^<>\n]*>\n(.*?)\n</\1>$", re.DOTALL | re.MULTILINE)
# A line that begins a message: of an extraction, of a reflection, of an episode.
_BEGINNING = re.compile(
    r"^(?:\[(?P<seq>\d+)\] (?P<role>\w+)[^\n]*?: |#(?P<number>\d+) \[(?:[^\]\n]* )?(?P<speaker>[^\]\n ]+)\] |"
    r"\[(?:[^\]\n]* )?(?P<name>[^\]\n ]+)\] )",
    re.MULTILINE,
)
_ENTRY = re.compile(r"^(\d+)\. \[.*?\] (.*(?:\n    .*)*)$", re.MULTILINE)
_NUMBER = re.compile(r"^(\d+)\.", re.MULTILINE)
_PATH = re.compile(r"(?<![\w./-])(?:[\w.-]{1,60}/){1,8}[\w-]{1,60}\.[a-z]{1,5}\b")
_LESSON = re.compile(r"\b(?:fail(?:s|ed)?|errors?|fix(?:e[sd])?|broke|works?)\b", re.IGNORECASE)
_INSIGHT = re.compile(r"\b(?:because|decided|should|instead|better|means)\b", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_OTHER_WORDS = {
    "is": "was",
    "are": "were",
    "use": "rely on",
    "uses": "relies on",
    "now": "by now",
    "need": "have",
    "should": "ought to",
    "fix": "repair",
    "fixed": "repaired",
    "because": "as",
    "add": "put in",
    "added": "put in",
    "show": "display",
    "shows": "displays",
    "all": "every one of the",
}
_OTHERWISE = re.compile(rf"\b(?:{'|'.join(_OTHER_WORDS)})\b")


class Line(NamedTuple):
    """A message of a transcript: its number, 0 if that is not shown, who said it, and what."""

    seq: int
    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Scripted:
    """Answer each question from its own text; call it as a model.

    With `otherwise`, sentences are repeated in somewhat other words.
    """

    otherwise: bool = False

    def __call__(self, prompt: str) -> str:
        """Return the JSON that a prompt asks for.

        Raises:
            LookupError: it asks for something else than learning does.

        """
        framed = {frame[1]: frame[2] for frame in _FRAME.finditer(prompt)}
        asked = _FRAME.sub("", prompt)
        answered: dict[str, object] = {}
        for key, answer in _ANSWERS.items():
            if f'"{key}"' in asked:
                answered |= answer(self, framed)
        if answered:
            return json.dumps(answered)
        raise LookupError("The prompt asks for nothing that the script knows.")

    def worded(self, sentence: str) -> str:
        """Return a sentence, in other words if it is to be so."""
        if not self.otherwise:
            return sentence
        return _OTHERWISE.sub(lambda word: _OTHER_WORDS[word[0]], sentence)


def lines(transcript: str) -> list[Line]:
    """Read the messages of a transcript; a text without messages is one that nobody said."""
    starts = list(_BEGINNING.finditer(transcript))
    if not starts:
        return [Line(0, "", _unescaped(transcript))]
    ends = (*(start.start() for start in starts[1:]), len(transcript))
    return [
        Line(
            int(start["seq"] or start["number"] or 0),
            start["role"] or start["speaker"] or start["name"],
            _unescaped(transcript[start.end() : end]),
        )
        for start, end in zip(starts, ends, strict=True)
    ]


def _unescaped(text: str) -> str:
    """Undo what transcripts are escaped with, and nothing else."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _said(framed: Mapping[str, str]) -> list[tuple[Line, str]]:
    """Return the sentences of people and assistants that are worth repeating, each with its message."""
    return [
        (line, sentence)
        for line in lines(framed.get("conversation", ""))
        if line.speaker != "tool"
        for sentence in sentences(line.text)
        if _SHORTEST <= len(sentence) <= _LONGEST and not sentence.startswith(("`", "calls "))
    ]


def _telling(said: Sequence[tuple[Line, str]], most: int) -> list[tuple[Line, str]]:
    """Choose the sentences with most different words, in the order in which they were said."""
    chosen = sorted(said, key=lambda one: (-len(_words(one[1])), one[1]))[:most]
    return [one for one in said if one in chosen]


def _begun(sentence: str) -> str:
    """Take the beginning of a sentence, up to the end of a word if that leaves several."""
    whole = sentence if len(sentence) <= _QUOTE else sentence[:_QUOTE].rsplit(" ", 1)[0]
    return whole if " " in whole else sentence[:_QUOTE]


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


def _kind(sentence: str) -> str:
    if _LESSON.search(sentence):
        return "lesson"
    return "insight" if _INSIGHT.search(sentence) else "finding"


# What is answered


def _observed(model: Scripted, framed: Mapping[str, str]) -> dict[str, object]:
    found: dict[str, list[object]] = {"findings": [], "insights": [], "lessons": []}
    for line, sentence in _telling(_said(framed), OBSERVATIONS):
        item = {"text": model.worded(sentence), "messages": _range(line), "quote": _begun(sentence)}
        found[f"{_kind(sentence)}s"].append(item)
    return {**found}


def _reflected(_: Scripted, framed: Mapping[str, str]) -> dict[str, object]:
    """Add what the user said first to the profile."""
    own = [(line, sentence) for line, sentence in _said(framed) if line.speaker == "user"]
    changes = [
        {"text": sentence, "messages": _range(line), "quote": _begun(sentence), "replaces": ""}
        for line, sentence in own[:1]
        if sentence not in _unescaped(framed["profile"])
    ]
    return {"profile": changes}


def _range(line: Line) -> list[int]:
    return [line.seq, line.seq] if line.seq else []


def _told(model: Scripted, framed: Mapping[str, str]) -> dict[str, object]:
    """Return the account of a session: what the user said first and what was said last."""
    said = [sentence for _, sentence in _said(framed)]
    ends = list(dict.fromkeys((*said[:1], *said[-1:])))
    told = {
        "summary": model.worded(" ".join(ends)) or "Nothing was said.",
        "files": list(dict.fromkeys(_PATH.findall(framed.get("conversation", ""))))[:_FILES],
        "decisions": [sentence for sentence in said if _kind(sentence) == "insight"][:3],
        "outcome": ends[-1] if ends else "",
    }
    return {"episode": told}


def _tidied(_: Scripted, framed: Mapping[str, str]) -> dict[str, object]:
    """Join each entry with the first other one of its group that says all of it, or of a pair most words."""
    changes = []
    for group in framed["groups"].split("\n\n"):
        used, entries = set[int](), {int(number): text for number, text in _ENTRY.findall(group)}
        likely = _SAME if group.startswith("Two ") else 1.0
        for number, text in entries.items():
            for other, wider in entries.items():
                alike = text in wider or (likely < 1 and _likeness(text, wider) >= likely)
                if number != other and alike and used.isdisjoint((number, other)):
                    used |= {number, other}
                    own = _unescaped(wider) if likely == 1 else ""
                    changes.append(
                        {"entries": [number, other], "change": "same", "text": own, "why": "One says it."}
                    )
    return {"changes": changes}


def _likeness(one: str, other: str) -> float:
    first, second = _words(one), _words(other)
    return len(first & second) / max(1, len(first | second))


def _ranked(_: Scripted, framed: Mapping[str, str]) -> dict[str, object]:
    return {"episodes": [int(number) for number in _NUMBER.findall(framed["episodes"])]}


_ANSWERS: Mapping[str, Callable[[Scripted, Mapping[str, str]], dict[str, object]]] = {
    "findings": _observed,
    "episode": _told,
    "profile": _reflected,
    "changes": _tidied,
    "episodes": _ranked,
}
"""By a key of the answer that the prompt names."""
