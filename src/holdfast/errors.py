"""Every error that Holdfast raises: one root, and one child per thing a caller can do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

if TYPE_CHECKING:
    from holdfast.types import Erasure

Reason = Literal["authentication", "quota", "timeout", "answer", "limit", "unavailable", "error"]
"""Why a model failed."""


class HoldfastError(Exception):
    """Catch this to catch everything that Holdfast raises on purpose.

    `what` says what happened in one sentence, `todo` says in one sentence what to do about it. Where they repeat what was
    passed, credentials in it are masked.
    """

    def __init__(self, what: str, todo: str) -> None:
        what, todo = _masked(what), _masked(todo)
        super().__init__(what, todo)
        self.what = what
        self.todo = todo

    def __str__(self) -> str:
        return f"{self.what} {self.todo}"


def _masked(text: str) -> str:
    """Mask the credentials that a sentence repeats; most sentences need no look."""
    if not any(_may_hold(word) for word in text.split()):
        return text
    # It raises our errors itself.
    from holdfast.safety.masking import mask

    return mask(text)


def _may_hold(word: str) -> bool:
    return len(word) >= 16 or any(sign in word.lower() for sign in _SIGNS)


_SIGNS = ("pass", "pwd", "secret", "bearer", "pin=", "pin:", "://")


class InvalidInput(HoldfastError, ValueError):
    """An argument, a message or a query cannot be accepted; nothing was stored. Correct it and call again."""


class BudgetExceeded(HoldfastError, ValueError):
    """What a prompt always shows takes more than its budget. Raise the budget, or let less be kept."""


class Conflict(HoldfastError):
    """What is stored is not what the caller took it for; nothing was changed. Read it again, then decide."""


class Denied(HoldfastError, PermissionError):
    """Who acts may not do this; nothing was changed. The message says who may."""


class Closed(HoldfastError, RuntimeError):
    """The memory was closed before this call. Open a new `Memory`."""


class Unavailable(HoldfastError):
    """The database cannot be reached, locked or written at the moment. Repair the cause and try again.

    `receipt` is given where words were erased from every table, and remains of them are left in files: it says in which,
    and why.
    """

    def __init__(self, what: str, todo: str, *, receipt: Erasure | None = None) -> None:
        super().__init__(what, todo)
        self.receipt = receipt


class Damaged(HoldfastError):
    """What is stored cannot be read as a Holdfast database. Restore a backup, or run `holdfast salvage`; nothing was overwritten."""


class NewerSchema(HoldfastError):
    """A newer Holdfast wrote this database. Upgrade the package; nothing was changed."""


class UnknownFormat(HoldfastError, ValueError):
    """No importer recognises this file. Convert it to one of the formats that the message names."""


class ModelFailed(HoldfastError):
    """The language model raised an error or did not answer. What it was asked for was not written; mend the cause, try again.

    `reason` says which kind of failure it is: "quota", "unavailable" and "timeout" may pass, "authentication" needs another key,
    "answer" is an answer that cannot be used, "limit" is your own limit (`Memory(learning=…)`), which let no more calls
    through, and "error" is everything else.
    """

    def __init__(
        self,
        what: str,
        todo: str,
        *,
        reason: Reason = "error",
    ) -> None:
        super().__init__(what, todo)
        self.reason = reason


class MissingExtra(HoldfastError, ImportError):
    """An optional dependency is not installed. Install the extra that the message names."""

    @classmethod
    def of(cls, extra: str, instead: str = "") -> Self:
        """Make the one for an extra of Holdfast, with what works from a checkout."""
        return cls(_NEEDS[extra], f"Run in a checkout of Holdfast: pip install '.[{extra}]'{instead}.")


_NEEDS = {
    "postgres": "PostgreSQL needs psycopg.",
    "llm": "A model that is given by its name needs pydantic-ai.",
    "mcp": "The MCP server needs the MCP SDK.",
    "otel": "Spans need OpenTelemetry.",
    "anthropic": "The Anthropic memory tool needs anthropic.",
    "openai-agents": "The session needs the OpenAI Agents SDK.",
    "pydantic-ai": "The adapter for pydantic-ai needs pydantic-ai.",
    "tiktoken": "The tokenizer of a model needs tiktoken.",
}
