"""What stands in every prompt: the profile of the user, what the agent is, and what always holds. A part of `Memory`.

They are records like all others; these are their short names, which the provider contract has as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.records.writing import Knowledge

if TYPE_CHECKING:
    from holdfast.types import Record, Writer


class Standing(Knowledge):
    """Write what stands in every prompt. A part of `Memory`."""

    def set_profile(
        self,
        text: str,
        *,
        by: Writer | None = None,
        chat: str | None = None,
        expected_version: int | None = None,
    ) -> Record:
        """Write the whole profile of the user, in place of the one before.

        A handle of an agent writes the agent's own, which stands before that of no agent and before the one that the tenant
        shares. An empty text takes back the one that `get("profile")` gives, as `retract("profile")` does.

        Args:
            text: the whole text: what is to be kept of the one before stands in it.
            by: who writes; the one named by `acting`, or else the agent.
            chat: the session in which it is done, whose next prompt shows it.
            expected_version: the version of the profile that you saw, as `get("profile")` gives it; 0 for none.

        Raises:
            InvalidInput: the text is blank, or too long; or it is empty, and there is none to take back; nothing was stored.
            Conflict: the profile has another version than `expected_version`.

        """
        return self._set("profile", text, by, chat, expected_version)

    def set_soul(
        self,
        text: str,
        *,
        by: Writer | None = None,
        chat: str | None = None,
        expected_version: int | None = None,
    ) -> Record:
        """Write the whole of what the agent is to this user, as `set_profile` writes who the user is."""
        return self._set("soul", text, by, chat, expected_version)

    def _set(
        self, kind: str, text: str, by: Writer | None, chat: str | None, expected_version: int | None
    ) -> Record:
        if text != "":
            return self.remember(text, kind, by=by, chat=chat, expected_version=expected_version)
        return self._retract(kind, kind=kind, by=by, chat=chat, expected_version=expected_version)

    def add_constraint(self, text: str, *, by: Writer | None = None, chat: str | None = None) -> Record:
        """Add what always holds. Only the user's own word does that: `by` must be "user".

        Raises:
            Denied: somebody else writes.
            InvalidInput: the text is blank, or too long, or the constraints have no room left; nothing was stored.

        """
        return self.remember(text, "constraint", by=by, chat=chat)

    def remove_constraint(
        self,
        id: str,
        *,
        by: Writer | None = None,
        chat: str | None = None,
    ) -> Record:
        """Take a constraint back, by its id or a part of its text; as for adding one, only the user may.

        Raises:
            Denied: somebody else writes.
            InvalidInput: there is no such constraint; nothing was stored.

        """
        return self.retract(id, kind="constraint", by=by, chat=chat)
