"""The errors that Holdfast raises: one root, and one child per thing a caller can do about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Self

Reason = Literal["authentication", "quota", "timeout", "answer", "limit", "unavailable", "error"]
"""Why a model failed."""

_LONGEST_VALUE = 200  # characters of a value in the text of an error
_CREDENTIAL_SIGNS = ("pass", "pwd", "secret", "bearer", "pin=", "pin:", "://")
_MASKS: list[Callable[[str], str]] = []


def mask_errors_with(mask: Callable[[str], str]) -> None:
    """Mask the credentials that errors repeat by `mask`, from now on."""
    _MASKS[:] = [mask]


def shown(value: object) -> str:
    """Return the `repr` of a value, cut to 200 characters, for the text of an error.

    >>> shown("a"), shown(10**5000)
    ("'a'", '<int that cannot be written>')
    """
    try:
        written = repr(value)
    except (ValueError, RecursionError):  # Python writes no number of more than 4,300 digits
        return f"<{type(value).__name__} that cannot be written>"
    return written if len(written) <= _LONGEST_VALUE else f"{written[:_LONGEST_VALUE]}…"


class HoldfastError(Exception):
    """The root of all errors that Holdfast raises on purpose. Catch it to catch them all.

    `what` is a sentence on what happened, `todo` one on what to do about it. Credentials that they repeat are
    masked.
    """

    def __init__(self, what: str, todo: str) -> None:
        what, todo = _mask(what), _mask(todo)
        # Not `super()`: a child may also be an error of a framework, which takes other arguments.
        Exception.__init__(self, what, todo)
        self.what = what
        self.todo = todo

    def __str__(self) -> str:
        return f"{self.what} {self.todo}"


def _mask(text: str) -> str:
    """Mask the credentials in a sentence; most sentences have no word that may be part of one."""
    if any(
        len(word) >= 16 or any(sign in word.lower() for sign in _CREDENTIAL_SIGNS) for word in text.split()
    ):
        for mask in _MASKS:
            text = mask(text)
    return text


class InvalidInput(HoldfastError, ValueError):
    """An argument, a message or a query cannot be accepted; nothing was stored. Correct it and call again."""


class BudgetExceeded(HoldfastError, ValueError):
    """The part that a prompt always shows exceeds its budget. Raise the budget, or have less kept."""


class Conflict(HoldfastError):
    """What is stored is not what the caller expects; nothing was changed. Read it again, then decide."""


class Denied(HoldfastError, PermissionError):
    """The writer may not do this; nothing was changed. The message names who may."""


class Closed(HoldfastError, RuntimeError):
    """The memory was closed before this call. Open a new `Memory`."""


class Unavailable(HoldfastError):
    """The database cannot be reached, locked or written at the moment. Repair the cause and try again.

    `receipt` is an `Erasure` where words were erased from every table and remains of them are left in files:
    it names the files, and why.
    """

    # An object: the type `Erasure` is defined above this module.
    def __init__(self, what: str, todo: str, *, receipt: object = None) -> None:
        super().__init__(what, todo)
        self.receipt = receipt


class Damaged(HoldfastError):
    """The file cannot be read as a Holdfast database; nothing was overwritten.

    Restore a backup, or run `holdfast salvage`.
    """


class NewerSchema(HoldfastError):
    """A newer Holdfast wrote this database. Upgrade the package; nothing was changed."""


class UnreleasedSchema(HoldfastError):
    """A Holdfast from before 0.1 wrote this database. Export with that one; nothing was changed."""


class UnknownFormat(HoldfastError, ValueError):
    """No importer recognises this file. Convert it to one of the formats that the message names."""


class ModelFailed(HoldfastError):
    """The model raised an error or did not answer. Nothing was written; repair the cause and try again.

    `reason` is the kind of failure: "quota", "unavailable" and "timeout" may pass, "authentication" needs
    another key, "answer" is an answer that cannot be used, "limit" is your own limit (`Memory(learning=…)`),
    which allows no more calls, and "error" is everything else.
    """

    def __init__(self, what: str, todo: str, *, reason: Reason = "error") -> None:
        super().__init__(what, todo)
        self.reason = reason


class MissingExtra(HoldfastError, ImportError):
    """An optional dependency is not installed. Install the extra that the message names."""

    @classmethod
    def of(cls, extra: str, instead: str = "") -> Self:
        """Return the error for an extra of Holdfast, with the command that installs it from a checkout."""
        return cls(_NEEDS[extra], f"Run in a checkout of Holdfast: pip install '.[{extra}]'{instead}.")


_NEEDS = {
    "cli": "The command line needs holdfast-cli.",
    "postgres": "PostgreSQL needs psycopg.",
    "llm": "A model that is given by its name needs pydantic-ai.",
    "mcp": "The MCP server needs the MCP SDK.",
    "otel": "Spans need OpenTelemetry.",
    "anthropic": "The Anthropic memory tool needs anthropic.",
    "openai-agents": "The session needs the OpenAI Agents SDK.",
    "crewai": "The storage for CrewAI needs crewai.",
    "pydantic-ai": "The adapter for pydantic-ai needs pydantic-ai.",
    "langgraph": "The adapters for LangGraph need langgraph.",
    "langchain": "The adapter for LangChain needs langchain-core.",
    "llama-index": "The adapter for LlamaIndex needs llama-index-core.",
    "google-adk": "The services for Google's ADK need google-adk.",
    "strands": "The adapter for Strands Agents needs strands-agents.",
    "agent-framework": "The adapter for the Microsoft Agent Framework needs agent-framework-core.",
    "model2vec": "An embedder of the kind model2vec: needs model2vec.",
    "fastembed": "An embedder of the kind fastembed: needs fastembed.",
    "embed": "An embedder on this machine needs model2vec or fastembed.",
    "tiktoken": "The tokenizer of a model needs tiktoken.",
}
