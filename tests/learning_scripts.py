"""What tests of learning are made of: a clock set by hand, a session, and a model that follows a script."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
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

# A key of the answer that each prompt names, and what the prompt is for.
_PURPOSES = {
    "replaces": "session",
    "findings": "observe",
    "summary": "episode",
    "changes": "tidy",
    "profile": "reflect",
    "episodes": "rank",
}
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
        answer = self.answers.get(purpose, self._whole if purpose == "session" and self.answers else None)
        if answer is None:
            return Scripted()(prompt)
        given = answer(prompt)
        return given if isinstance(given, str) else json.dumps(given)

    def _whole(self, prompt: str) -> object:
        """Answer the one question about a session with what the three would be answered with."""
        answer = json.loads(Scripted()(prompt))
        given: Any = {name: own(prompt) for name, own in self.answers.items()}
        if (observed := given.get("observe")) is not None:
            if not isinstance(observed, dict):
                return observed
            answer |= {"findings": [], "insights": [], "lessons": []} | observed
        answer["episode"] = given.get("episode", answer["episode"])
        if isinstance(offered := given.get("reflect"), dict):
            quote = next(iter(offered["profile_quotes"]), "")
            change = {"text": offered["profile"], "quote": quote, "replaces": ""}
            answer["profile"] = [change] if offered["profile"] else []
        return answer

    def asked(self, purpose: str) -> list[str]:
        """Give the prompts of a purpose, in their order; that about a whole session has three."""
        purposes = (purpose, "session") if purpose in ("observe", "episode", "reflect") else (purpose,)
        return [prompt for one, prompt in self.prompts if one in purposes]


def purpose_of(prompt: str) -> str:
    """Say what a prompt is for, by the answer that it asks for."""
    asked = _FRAME.sub("", prompt)
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


def offers(profile: str | None = None, *found: str, why: str = "The user said so.") -> Answer:
    """Answer a reflection with a profile, None for none, and findings; they quote how the user began."""

    def answer(prompt: str) -> object:
        quote = _begun(lines(framed(prompt, "conversation")), ())
        observations = [{"kind": "finding", "text": text, "messages": [], "quote": quote} for text in found]
        return {"profile": profile, "profile_quotes": [quote], "observations": observations, "why": why}

    return answer


def says(answer: str) -> Answer:
    """Answer with a text, whatever is asked."""
    return lambda _: answer


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
