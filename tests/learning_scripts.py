"""What tests of learning are made of: a clock set by hand, a session, and a model that follows a script."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.scripted import Line, Scripted, lines
from holdfast import Memory, Message, Record
from holdfast.chat import Chat
from holdfast.text.sentences import sentences

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
SESSION = (
    "We keep the sessions of the shop in Redis, and they are lost at every restart.",
    "I looked at src/shop/cache.py: Redis runs without persistence, so a restart empties it.",
    "We decided to move the sessions to PostgreSQL, because Redis loses them at every restart.",
    "I moved the sessions to PostgreSQL in src/shop/sessions.py, and all 42 tests of the shop pass now.",
    "Write down in docs/migration.md how the sessions are copied, please.",
    (
        "I wrote docs/migration.md: it tells how to copy the sessions, "
        "and how to roll back if the copy fails halfway."
    ),
)
"""Three turns of a user and an assistant."""
BACKUP = "The nightly backup of the shop takes 40 minutes."
TEXT = f"{BACKUP} It is kept for 30 days, in a cellar in Frankfurt."
DECIDED = "We decided to keep the backups of the shop for 30 days, because the lawyers want it."

# What is asked for by a key of the answer that a prompt names, and what the prompt is for.
_PARTS = {"findings": "observe", "episode": "episode", "profile": "reflect"}
_PURPOSES = {"changes": "tidy", "episodes": "rank"}
_FRAME = re.compile(r"^<(\w+)[^<>\n]*>\n(.*?)\n</\1>$", re.DOTALL | re.MULTILINE)
_SHORTEST = 12  # characters of a sentence that a naive model reports

Answer = Callable[[str], object]


class Clock:
    """Say what time it is; it stands still until it is moved."""

    def __init__(self, now: datetime = START) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def move(self, **by: float) -> None:
        """Let time pass, such as `minutes=30`."""
        self.now += timedelta(**by)


@dataclass
class Model:
    """Answer each request by its purpose, as in `answers` or else as `Scripted`, and keep what was asked."""

    answers: Mapping[str, Answer] = field(default_factory=dict)
    prompts: list[tuple[str, str]] = field(default_factory=list)

    def __call__(self, prompt: str) -> str:
        purpose = purpose_of(prompt)
        self.prompts.append((purpose, prompt))
        answer = self.answers.get(purpose)
        if answer is None:
            answer = self._parts if {*self.answers} & {*_PARTS.values()} else Scripted()
        given = answer(prompt)
        return given if isinstance(given, str) else json.dumps(given)

    def _parts(self, prompt: str) -> object:
        """Answer a question with what the jobs whose parts it asks for would be answered with."""
        answer = json.loads(Scripted()(prompt))
        for part in parts_of(prompt):
            own: Any = self.answers[part](prompt) if part in self.answers else {}
            if not isinstance(own, dict):
                return own
            if part == "observe" and own:
                answer |= {"findings": [], "insights": [], "lessons": []}
            elif own:
                key = next(key for key, name in _PARTS.items() if name == part)
                own = {key: own.get(key, own)}
            answer |= own
        return answer

    def asked(self, purpose: str) -> list[str]:
        """Give the prompts that ask for what a purpose asks for, in their order."""
        return [prompt for one, prompt in self.prompts if purpose in (one, *parts_of(prompt))]


def parts_of(prompt: str) -> list[str]:
    """Say which jobs' parts a prompt asks for."""
    asked = _FRAME.sub("", prompt)
    return [part for key, part in _PARTS.items() if f'"{key}"' in asked]


def purpose_of(prompt: str) -> str:
    """Say what a prompt is for, by the answer that it asks for: "session" for all that a session has."""
    parts, asked = parts_of(prompt), _FRAME.sub("", prompt)
    if parts == ["observe", "reflect"] and '"facts"' not in asked:
        return "reflect"
    if parts:
        return parts[0] if len(parts) == 1 else "session"
    return next(purpose for key, purpose in _PURPOSES.items() if f'"{key}"' in asked)


def framed(prompt: str, name: str) -> str:
    """Read what stands in a frame of a prompt, "" if there is no such frame."""
    return next((frame[2] for frame in _FRAME.finditer(prompt) if frame[1] == name), "")


def everything(prompt: str) -> object:
    """Answer as a naive model would: every sentence of the transcript, whoever said it, is a finding."""
    return {
        "findings": [
            {"text": sentence, "messages": [line.seq, line.seq] if line.seq else [], "quote": sentence[:60]}
            for line in lines(framed(prompt, "conversation"))
            for sentence in sentences(line.text)
            if len(sentence) >= _SHORTEST
        ],
        "insights": [],
        "lessons": [],
    }


def finds(*found: str | tuple[str, Sequence[int], str], kind: str = "finding") -> Answer:
    """Answer with some texts of a kind, each with its messages and its quote if they are given.

    Without a quote, it is what the first of these messages that was shown begins with, a user's if there is
    one; without messages, they are all that were shown.
    """

    def answer(prompt: str) -> object:
        shown = lines(framed(prompt, "conversation"))
        items = [
            {"text": text, "messages": list(seqs) or _ends(shown), "quote": quote or _begun(shown, seqs)}
            for text, seqs, quote in ((one, (), "") if isinstance(one, str) else one for one in found)
        ]
        return {"findings": [], "insights": [], "lessons": [], f"{kind}s": items}

    return answer


def _ends(shown: Sequence[Line]) -> list[int]:
    return [shown[0].seq, shown[-1].seq] if shown and shown[0].seq else []


def _begun(shown: Sequence[Line], seqs: Sequence[int]) -> str:
    """Take the first words of a message of a range, or of any that was shown."""
    within = [line for line in shown if seqs and seqs[0] <= line.seq <= seqs[-1]] or shown
    said = min(within, key=lambda line: line.speaker != "user", default=Line(0, "", ""))
    return " ".join(said.text.split()[:6])


def offers(profile: str | None = None, *found: str) -> Answer:
    """Answer a reflection with a sentence for the profile, None for none, and findings.

    They quote how the user began.
    """

    def answer(prompt: str) -> object:
        shown = lines(framed(prompt, "conversation"))
        quote = _begun(shown, ())
        first = next((line.seq for line in shown if quote in line.text), 0)
        items = [{"text": text, "messages": [], "quote": quote} for text in found]
        change = {"text": profile, "messages": [first], "quote": quote, "replaces": ""}
        lists: dict[str, object] = {"findings": items, "insights": [], "lessons": []} if found else {}
        return {**lists, "profile": [change] if profile else []}

    return answer


def says(answer: str) -> Answer:
    """Answer with a text, whatever is asked."""
    return lambda _: answer


def own_prompt(folder: Path, more: str = "") -> str:
    """Write a prompt of a user's own, which asks for findings and some `more`, and return its path."""
    file = folder / "short.md"
    file.write_text(
        f"""Say what you learn of the $type "$step", as JSON: {{"findings": [""]{more}}}

<known>
$known
</known>

<conversation>
$transcript
</conversation>
"""
    )
    return str(file)


def failing(_: str) -> object:
    """Fail as a model may, with words that nobody may read again."""
    raise RuntimeError("the secret words of a provider")


def hold(memory: Memory, chat: str = "shop", texts: Sequence[str] = SESSION) -> Chat:
    """Hold a session of a user and an assistant in turn."""
    session = memory.chat(chat)
    roles = ("user", "assistant")
    session.append([Message(roles[place % 2], text) for place, text in enumerate(texts)])  # type: ignore[arg-type]  # one of the roles
    return session


def learned(memory: Memory) -> list[Record]:
    """Give all that is known but for episodes, the oldest first."""
    return [record for record in memory.records(kind=None) if record.kind != "episode"]


def known(memory: Memory) -> list[tuple[str, str]]:
    """Give the kinds and texts of all that is known, sorted."""
    return sorted((record.kind, record.text) for record in memory.records())


def texts(memory: Memory, kind: str | None = None) -> list[str]:
    """Give the texts of what is known of a kind, or of all but episodes."""
    return [record.text for record in (learned(memory) if kind is None else memory.records(kind=kind))]


def finding(*found: str | tuple[str, Sequence[int], str]) -> Model:
    """Make a model that finds some texts, and has nothing to say on reflection."""
    return Model({"observe": finds(*found), "reflect": offers()})


def say(chat: Chat, *said: tuple[str, str]) -> None:
    """Append messages, each with its role."""
    chat.append([{"role": role, "content": content} for role, content in said])
