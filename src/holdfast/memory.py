"""The front door: an open database bound to a scope."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Self

from holdfast.chat import Chat
from holdfast.errors import InvalidInput
from holdfast.kinds import Kind, table
from holdfast.learning.service import Learner
from holdfast.logs import logged
from holdfast.prompt.window import Lossless, Policy, check_policy
from holdfast.records.view import At
from holdfast.runtime import Opened
from holdfast.safety.masking import check_name_is_open
from holdfast.scratchpad import Pad
from holdfast.store import sessions
from holdfast.store.connect import check_location, open_database
from holdfast.store.database import Durability
from holdfast.store.pads import ScratchpadKey
from holdfast.text.tokens import CountBy, counter, estimate_tokens
from holdfast.types import ChatInfo, Scope, Verification, check_count, check_flag, check_key, check_name
from holdfast.types.acting_as import current

if TYPE_CHECKING:
    from holdfast.aio import AsyncMemory
    from holdfast.learning.guard_job import Guard
    from holdfast.llm.model import Model
    from holdfast.settings import Learning
    from holdfast.tools.tool import Style, Tool


def _now() -> datetime:
    return datetime.now(UTC)


def _asked(guard: Guard) -> Model:
    # Only for those who have a guard.
    from holdfast.learning.guard_job import model_of

    return model_of(guard)


class Memory(Learner):
    """Remember conversations and what was learned from them, and find both again.

    Open one per database and share it between threads; handles for other scopes are cheap and use the same
    connections. Close it, or use it as a context manager.

    Args:
        location: a path, ":memory:", or a postgresql:// URL.
        tenant: whose installation it is; empty for one's own.
        user: whose memory it is. Nothing of one user is ever found by another. Without one, that of `acting`.
        agent: who acts. Chats opened through this handle belong to it, and recall and `chats` cover only its chats;
            of records, those of this agent and those of none. Empty covers those of all agents. Without one, that of
            `acting`.
        durability: "full" survives a power cut at every append; "normal" may lose the last moments, never the order.
        count_tokens: counts the tokens of a text: a function, or the name of a model or an encoding, with the extra
            `tiktoken`: "openai:gpt-5-mini", "tiktoken:o200k_base". Its table is downloaded now, unless it is in the folder
            that $TIKTOKEN_CACHE_DIR names. The default is an estimate from the number of characters, about a tenth off for a
            message in English, more for code and other languages.
        clock: says what time it is, for messages that come without one.
        kinds: rows of policy for kinds of your own, or in place of those of `holdfast.kinds`.
        learning: how it learns in the background, and the limits of what models may be asked; see `holdfast.Learning`.
        policy: how windows are made, prompts with them, and chats compacted, where none is named there; see
            `holdfast.prompt.window`. A budget that is named there is taken in place of its own. None for `Lossless()`.
        admin: whether a handle of one user may act for other users: `scoped(user=…)`, `chats(user=…)`, `erase(user=…)`,
            `work(everyone=True)`. Without it these raise Denied; a handle that names no user may scope to any. This is a
            guard against mistakes, such as a name from a request in the wrong place, not against code that holds the
            database.
        key: 16 to 64 bytes that are stored nowhere: the checksums of rows are then hashes with this key, which nobody can
            make without it, and `verify` finds what others changed in the database. Without one they are CRC-32.
        guard: your own classifier of what is an order to the model: a function from a text to True or False, synchronous or
            not. `work` asks it about each message, and about each record that neither the user nor the application wrote;
            its calls are on the meter as those of a model, with the purpose "guard". Until it has answered, what the
            built-in guard found counts; from then on, what it said. None leaves it at the built-in one.

    Raises:
        InvalidInput: an argument is not usable.
        Unavailable, Damaged, NewerSchema, MissingExtra: the database, or the tokenizer that is named, cannot be opened; each
            says why.

    """

    def __init__(
        self,
        location: str | os.PathLike[str],
        *,
        tenant: str = "",
        user: str = "",
        agent: str = "",
        durability: Durability = "full",
        count_tokens: CountBy = estimate_tokens,
        clock: Callable[[], datetime] = _now,
        kinds: Iterable[Kind] = (),
        learning: Learning | None = None,
        policy: Policy | None = None,
        admin: bool = False,
        key: bytes | None = None,
        guard: Guard | None = None,
    ) -> None:
        scope = Scope(
            tenant, user, check_name_is_open(check_name(agent, "agent", empty=True), "The name of the agent")
        )
        policy = Lossless() if policy is None else check_policy(policy)
        known = table(kinds)
        # Not needed to import all the rest.
        from holdfast.settings import Learning

        if learning is not None and not isinstance(learning, Learning):
            raise InvalidInput(f"`learning` is {learning!r}.", "Pass a holdfast.Learning.")
        check_flag(admin, "admin")
        asked = None if guard is None else _asked(guard)
        count = counter(count_tokens)
        database = open_database(location, durability, check_key(key))
        opened = Opened(database, count, clock, known, learning or Learning(), policy, asked)
        super().__init__(opened, scope, At())
        self._pinned = False
        self._admin = admin

    @property
    def name(self) -> str:
        """What this kind of memory is called among the providers of the contract."""
        return "holdfast"

    @property
    def scope(self) -> Scope:
        """Whose memory this handle is."""
        acting = current()
        if self._pinned or not (acting.user or acting.agent):
            return self._bound
        own = self._bound
        return Scope(own.tenant, own.user or acting.user, own.agent or acting.agent)

    def scoped(self, *, tenant: str | None = None, user: str | None = None, agent: str | None = None) -> Self:
        """Make a handle for another tenant, user or agent on the same connections; None keeps what this one has.

        Of a class of your own, it is of that class, and has the attributes of this handle.

        Raises:
            Denied: the handle names a user and was not opened with `admin=True`, and this is another user.
            InvalidInput: a name is not usable, or that of the agent holds a credential.

        """
        own = self._bound
        scope = Scope(
            own.tenant if tenant is None else tenant,
            own.user if user is None else user,
            own.agent if agent is None else agent,
        )
        self._check_scope(scope)
        if agent is not None:
            check_name_is_open(agent, "The name of the agent")
        return self._handle(scope, pinned=self._pinned)

    def _holds(self, chat: Chat) -> bool:
        memory = chat._memory  # noqa: SLF001 - a part of its memory
        opened = [
            getattr(one, "_open", None) for one in (self, memory)
        ]  # a memory that keeps nothing has none open
        return opened[0] is opened[1] and memory.scope.space == self.scope.space

    def _handle(self, scope: Scope, *, pinned: bool) -> Self:
        memory = copy(self)
        memory._bound, memory._pinned = scope, pinned  # noqa: SLF001 - our own
        return memory

    @property
    def pad(self) -> Pad:
        """The scratchpad of the user: a dict of texts that is kept."""
        return Pad(self._open, ScratchpadKey(self.scope.space))

    def chat(
        self,
        id: str | None = None,
        *,
        channel: str | None = None,
        meta: Mapping[str, object] | None = None,
    ) -> Chat:
        """Open a session by its id. It comes into being with its first message.

        The chat stays with the user and the agent that it was opened for, whoever acts later. Without an id it is the
        one that `acting` names, or else a new one with an id of its own.

        Args:
            id: what it is called, unique for the user.
            channel: where it takes place, such as "telegram". Opening stores nothing: this and `meta` are stored with the
                next message that is appended through this handle, in a new chat and in one that is there.
            meta: any JSON object. Its keys replace those of the same name, all others stay, and None takes one away;
                `Chat.label` does the same at once.

        Raises:
            InvalidInput: the id is blank, longer than 512 bytes in UTF-8, has control characters, or holds a credential;
                the channel is no such name either, or the metadata is no JSON object.

        """
        name = self._chat_id(id)
        opened = Chat(self._handle(self.scope, pinned=True), name, sessions.check_label(channel, meta))
        self._check_chat(name)
        return opened

    def _chat_id(self, id: str | None) -> str:
        return (current().chat or os.urandom(8).hex()) if id is None else id

    @logged
    def chats(
        self,
        *,
        agent: str | None = None,
        user: str | None = None,
        archived: bool | None = False,
        channel: str | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[ChatInfo]:
        """List sessions, the one with the newest message first; `Chat.info` gives that of one chat.

        Args:
            agent: whose chats; None for those of this handle's agent, "" for those of all agents.
            user: a user of the same tenant, "" for what all share; None for this handle's. Another one than that of the
                handle only with `Memory(…, admin=True)`, or from a handle that names no user.
            archived: True for archived chats only, None for both kinds.
            channel: only chats of this channel, "" for those that have none; None for all.
            limit: at most so many.
            offset: leave out so many of the first.

        Raises:
            InvalidInput: a negative limit or offset, or a channel that is no name.
            Denied: another user than that of the handle.

        """
        own = self.scope
        scope = Scope(own.tenant, own.user if user is None else user, own.agent if agent is None else agent)
        self._check_scope(scope)
        return sessions.list_chats(
            self._open.database,
            scope,
            archived=None if archived is None else check_flag(archived, "archived"),
            channel=None if channel is None else check_name(channel, "The channel", empty=True),
            limit=None if limit is None else check_count(limit, "limit"),
            offset=check_count(offset, "offset"),
        )

    def users(self) -> list[str]:
        """Name the users of this tenant of whom something is stored; "" stands for what all of them share.

        Reads a row for each user of the database, of all tenants.

        Raises:
            Denied: the handle names a user and was not opened with `admin=True`.

        """
        self._check_scope(None)
        return sessions.users(self._open.database, self.scope.tenant)

    def rebuild(self) -> int:
        """Make the search index of this space again from the log and the records, and count the messages in it.

        Searches give the same results before and after, to the last bit. An index that another version of Holdfast left
        in the database is removed; where such a version still runs, it makes its own again.
        """
        return self._open.search.rebuild(self.scope.space)

    @logged
    def verify(self, *, key: bytes | None = None) -> Verification:
        """Check that every message of this space is reachable, every row as it was written, and its index true.

        Reads all rows of the space and makes its index anew for comparison: linear. Rows that a checksum proves nothing of
        are counted as `unproven`; a row that somebody took out from the end of the log is not noticed.

        Args:
            key: the one that the rows were sealed with; None for that of `Memory(key=…)`.

        Raises:
            InvalidInput: the key has less than 16 bytes or more than 64.

        """
        # Loads numpy, which most programs never need.
        from holdfast.verify import verify

        database = self._open.database
        with database.one_read():
            return verify(database, self.scope.space, database.key if key is None else check_key(key))

    @logged
    def backup(self, path: str | os.PathLike[str]) -> Verification:
        """Copy the whole database, all its users, into a new file while others read and write, and check the copy.

        The copy holds what was committed when it began, and opens as any database. It is readable by its owner only, and
        there whole or not at all. Each row of it is compared with its checksum: a row that was damaged before is copied
        as it is, and named among the problems of the result.

        Raises:
            InvalidInput: there is a file at the path; or the database is on PostgreSQL, which has pg_dump for that.
            Unavailable: the copy cannot be written; nothing of it is left.
            Damaged: the database cannot be read whole; `holdfast salvage` saves what can be.

        """
        # Only for those who copy.
        from holdfast.store.atomic_file import new_file

        # Loads numpy, which most programs never need.
        from holdfast.verify import verify_copy

        with new_file(Path(check_location(path)).absolute()) as draft:
            self._open.database.copy(str(draft))
            return verify_copy(str(draft), self._open.database.key)

    def tools(
        self,
        chat: Chat | str | None = None,
        *,
        style: Style = "many",
        allow: Iterable[str] | None = None,
        read_only: bool | Iterable[str] = False,
        confirm: Callable[[str], bool] | None = None,
        token_cap: int = 2_000,
    ) -> list[Tool]:
        """Make tools for an agent: recall, remember and the rest, to be handed to any framework.

        A call takes JSON and gives JSON, and never raises: what goes wrong is a result that says what is possible. Tools
        of a chat stay with the user and the agent that they were made for, whoever acts later, as the chat does. See
        `holdfast.tools.exports` for the forms that model providers take, `holdfast.tools.presets` for other sets.

        Args:
            chat: the session in which the agent acts: what it learns was learned there, and what it is shown is not
                learned again. None for no session in particular.
            style: "many" for one tool for each action, "single" for one tool `memory` with an argument `action`.
            allow: only these actions; None for all.
            read_only: True if nothing may be written, or the parts that may not: "records", "profile", "soul",
                "constraints", "notes", "scratchpad". What may not be written cannot be rolled back either.
            confirm: asks the user about a change of a constraint, in words made for them, and returns True if they
                agreed. Without it constraints cannot be changed, and the model is told that the user has to be asked.
            token_cap: tokens of a result at most, 400 or more; it comes with a cursor where there is more.

        Raises:
            InvalidInput: an unknown style, action or part, a cap that is too small, a `confirm` that has to be awaited,
                or a chat of another user or database.

        """
        # Only for those who use tools.
        from holdfast.tools.tool import tools_for

        inner = getattr(chat, "__wrapped__", chat)  # one that is traced as well
        if isinstance(inner, Chat) and not self._holds(inner):
            raise InvalidInput(
                "The chat is that of another user or database.", "Make the tools of its own memory."
            )
        return tools_for(
            self if chat is None else self._handle(self.scope, pinned=True),
            chat,
            style=style,
            allow=allow,
            read_only=read_only,
            confirm=confirm,
            token_cap=token_cap,
        )

    @property
    def aio(self) -> AsyncMemory:
        """The same methods, awaited."""
        # asyncio is loaded only where it is used.
        from holdfast.aio import AsyncMemory

        return AsyncMemory(self, lambda: self._open.executor)

    def close(self) -> None:
        """Close the connections of this handle and of all that share them. Closing twice is harmless."""
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Memory({self.scope})"
