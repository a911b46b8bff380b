"""The branches of a chat: take back, edit, try again, and go to another branch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.errors import InvalidInput, shown
from holdfast.events import logged
from holdfast.messages.message_tokens import message_tokens
from holdfast.messages.normalize import ready
from holdfast.store import branches, log
from holdfast.types import Branch, Message, Scope, check_count
from holdfast.types.handles import Handle

if TYPE_CHECKING:
    from holdfast.runtime import Runtime
    from holdfast.store.database import Database


class Branching(Handle):
    """The branches of a chat; a part of `Chat`.

    The log keeps every word: what is taken back is a branch of its own. Windows, prompts, recall, compaction,
    learning and exports see the current branch only.
    """

    _runtime: Runtime
    _scope: Scope
    _database: Database
    _id: str

    @logged
    def rewind(self, to: int) -> None:
        """Take back all messages after one; the next message follows that one.

        They stay in the log as a branch, see `branches`; `Memory.undo` brings them back, also when the chat
        has gone on.

        Args:
            to: the `seq` of the message that is to be the last one; 0 for none.

        Raises:
            InvalidInput: it is not on the current branch, or a tool call would lose its result: then go to
                before the call, or to its last result.

        """
        branches.rewind(self._database, self._scope, self._id, check_count(to, "to"), self._runtime.now())

    @logged
    def edit(self, seq: int, content: str) -> Message:
        """Take back a message and all after it, and append it with other words, in one transaction.

        The new message has the role, the name and the metadata of the old one, and a `seq` and an id of its
        own; of its payload nothing else is kept.

        Args:
            seq: of a message of the current branch.
            content: the words in place of those.

        Returns:
            The message as stored.

        Raises:
            InvalidInput: there is no such message on the current branch, nothing is said, or the message is a
                tool call or a result, which belong together.

        """
        database, scope, runtime = self._database, self._scope, self._runtime
        stored = log.read(database, scope.space, self._id, after=check_count(seq, "seq") - 1, limit=1)
        if not seq or not stored or stored[0].seq != seq:
            raise branches.not_on_branch(self._id, seq)
        old = stored[0]
        if old.calls or old.role == "tool":
            raise InvalidInput(
                f"Message {seq} is a tool call or its result.",
                "Edit the request before it, or rewind to that and append the messages anew.",
            )
        draft = ready(Message(old.role, content, name=old.name, meta=old.meta))
        tokens = message_tokens(draft, runtime.count_tokens)
        prompt = runtime.prompts.last_prompt(scope.space, self._id)
        return branches.edit(database, scope, self._id, seq, draft, tokens, runtime.now(), prompt)

    @logged
    def regenerate(self) -> Message:
        """Take back all after the newest message of the user, and return that, to be answered again.

        Where it has no answer, nothing changes. Make the prompt anew: `prompt(query=request.content)`.

        Raises:
            InvalidInput: the branch has no message of the user.

        """
        return branches.regenerate(self._database, self._scope, self._id, self._runtime.now())

    def branches(self) -> list[Branch]:
        """List the branches of the chat in the order of their last messages; an unknown chat has none.

        Read one with `history(branch=…)`.
        """
        with self._database.one_read():
            return branches.list_branches(self._database, self._scope.space, self._id)

    @logged
    def switch(self, branch: Branch | int) -> None:
        """Make a branch the current one.

        Args:
            branch: of `branches`, or its `head`.

        Raises:
            InvalidInput: no branch of the chat ends there.

        """
        if isinstance(branch, Branch) and branch.chat != self._id:
            raise InvalidInput(f"{shown(branch)} is of another chat.", "Use one of `chat.branches()`.")
        branches.switch(self._database, self._scope, self._id, head_of(branch), self._runtime.now())


def head_of(branch: Branch | int) -> int:
    """Return the last message of a branch.

    Raises:
        InvalidInput: it is none, nor a number.

    """
    return branch.head if isinstance(branch, Branch) else check_count(branch, "branch")
