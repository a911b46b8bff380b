"""What an agent can do with a memory: typed functions of plain values, over any provider of the contract.

Tools, the MCP server and adapters are all made of these. Their signatures have the parameters and what these
are for; `Actions.available` returns those that are permitted. They return the dataclasses of
`holdfast.tools.results`, within a number of tokens, and raise the errors of Holdfast.
"""

from __future__ import annotations

from holdfast.tools.read_actions import ReadActions
from holdfast.tools.results import Status
from holdfast.tools.write_actions import WriteActions
from holdfast.types import ChatStats


class Actions(ReadActions, WriteActions):
    """Act on a memory for an agent.

    Args:
        provider: the memory.
        chat: the session in which the agent acts, or its id; None for no session in particular.
        by: who writes; constraints are always written as the user, who confirmed them.
        confirm: asks the user about a change of a constraint, in words made for them, and returns whether
            they agreed. A model has no way to call it. Without it, constraints cannot be changed.
        kinds: the kinds of records that `remember` stores; None for those of the memory. Of a part that is
            read-only it stores none.
        read_only: True if nothing may be written, or the parts that may not: "records", "profile", "soul",
            "constraints", "notes", "scratchpad". What may not be written cannot be rolled back either.
        max_tokens: tokens of a result at most; the rest comes with its cursor. Texts are cut for that, names
            and ids are not: with a cap below 1,000, very long ones may take more.
        count_tokens: counts the tokens of a text, by a function or a name as `Memory` takes it; None for the
            counter of the memory.

    Raises:
        InvalidInput: an option is of the wrong kind, or `confirm` has to be awaited.

    """

    def status(self) -> Status:
        """Return which memory this is, what it can do, and the size of this session."""
        stats = self._chat.stats() if self._session else ChatStats()
        return Status(
            memory=self._provider.name,
            can=tuple(action.name for action in self.available() if action.name != "status"),
            session=self._session,
            messages=stats.messages,
            tokens=stats.stored_tokens,
            context_tokens=stats.context_tokens,
            version=self._provider.version() if "versions" in self._permissions.can else 0,
        )
