"""Requests to a model, and the one that follows an answer that cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from html import escape

# Characters of an unreadable answer that are shown to the model again.
_SHOWN = 2_000


class Unreadable(Exception):
    """The answer of a model cannot be used. Its text is the reason, without words of the answer."""


@dataclass(frozen=True, slots=True)
class LLMRequest:
    """A request to a model.

    `purpose` is the kind of job that makes it, `schema` the JSON schema of the answer, for providers that can
    enforce one; None stands for plain text. `version` is that of the prompt, as in "observe v1".
    `answer_tokens` is about what an answer takes at most.
    """

    purpose: str
    prompt: str
    schema: Mapping[str, object] | None = field(hash=False)
    version: str
    answer_tokens: int = 1_000

    def again(self, answer: str, why: Unreadable) -> LLMRequest:
        """Return the request with the answer that could not be read and the reason.

        The answer is escaped, and each of its lines indented, so that nothing in it can leave its frame.
        """
        shown = answer if len(answer) <= _SHOWN else f"{answer[:_SHOWN]}…"
        framed = "\n".join(f"    {line}" for line in escape(shown, quote=False).splitlines())
        return replace(
            self,
            prompt=f"{self.prompt}\n\nYour last answer could not be used: {why}\n"
            f"<answer>\n{framed}\n</answer>\n"
            "Answer again, with the JSON alone.",
        )


# Calls a model with a request, and returns its answer.
Ask = Callable[[LLMRequest], str]


def exactly(properties: Mapping[str, object]) -> Mapping[str, object]:
    """Return the JSON schema of an object with all of these properties, and no other."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
