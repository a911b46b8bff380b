"""What a model is asked when something is to be learned, and how it is asked again when its answer cannot be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from html import escape

_SHOWN = 2_000  # characters of an answer that cannot be read that are shown to who wrote it


class Unreadable(Exception):
    """The answer of a model is not what it was asked for. `str` of it says why, in no words of the answer."""


@dataclass(frozen=True, slots=True)
class LLMRequest:
    """Ask a model for something.

    `purpose` is the kind of job that it is asked for, `schema` the JSON schema of the answer, which providers that can
    hold a model to one are given and all others are told in the prompt; None asks for plain text. `version` is that of the prompt, as in
    "observe v1". `answer_tokens` is what an answer takes at most, about.
    """

    purpose: str
    prompt: str
    schema: Mapping[str, object] | None = field(hash=False)
    version: str
    answer_tokens: int = 1_000

    def again(self, answer: str, why: Unreadable) -> LLMRequest:
        """Ask once more, with the answer that could not be read and the reason.

        The answer is escaped, and each of its lines is indented: what was written into it cannot leave its frame.
        """
        return replace(
            self,
            prompt=f"{self.prompt}\n\nYour last answer could not be used: {why}\n<answer>\n{_framed(answer)}\n</answer>\n"
            "Answer again, with the JSON alone.",
        )


def exactly(properties: Mapping[str, object]) -> Mapping[str, object]:
    """Return the JSON schema of an object with all of these properties, and no other."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _framed(answer: str) -> str:
    shown = answer if len(answer) <= _SHOWN else f"{answer[:_SHOWN]}…"
    return "\n".join(f"    {line}" for line in escape(shown, quote=False).splitlines())
