"""Every error that Holdfast raises: one root, and one child per thing a caller can do about it."""

from __future__ import annotations

from typing import Literal

Reason = Literal["authentication", "quota", "timeout", "answer", "limit", "unavailable", "error"]
"""Why a model failed."""


class HoldfastError(Exception):
    """Catch this to catch everything that Holdfast raises on purpose.

    `what` says what happened in one sentence, `todo` says in one sentence what to do about it.
    """

    def __init__(self, what: str, todo: str) -> None:
        super().__init__(what, todo)
        self.what = what
        self.todo = todo

    def __str__(self) -> str:
        return f"{self.what} {self.todo}"


class InvalidInput(HoldfastError, ValueError):
    """An argument, a message or a query cannot be accepted; nothing was stored. Correct it and call again."""


class Conflict(HoldfastError):
    """What is stored is not what the caller took it for; nothing was changed. Read it again, then decide."""


class Denied(HoldfastError, PermissionError):
    """Who acts may not do this; nothing was changed. The message says who may."""


class Closed(HoldfastError):
    """The memory was closed before this call. Open a new `Memory`."""


class Unavailable(HoldfastError):
    """The database cannot be reached, locked or written at the moment. Repair the cause and try again."""


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
