"""One session: its log, its window, its prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, overload

from holdfast import payload
from holdfast.context.prompt import build as build_prompt
from holdfast.context.window import FreshTail, Policy, expected_messages, selector, within
from holdfast.errors import InvalidInput
from holdfast.store import log
from holdfast.text.clean import clean
from holdfast.text.tokens import message_tokens
from holdfast.types import ChatStats, Hit, Message, Prompt, Role, ToolCall, Window, check_count, check_name

if TYPE_CHECKING:
    from holdfast.memory import Memory


class Chat:
    """Append to a session and read it back. Made by `Memory.chat`; holds no state of its own."""

    def __init__(self, memory: Memory, id: str) -> None:  # noqa: A002 - as in Memory.chat
        self._memory = memory
        self._id = check_name(id, "The id of a chat")

    @property
    def id(self) -> str:
        """The id of the session, unique within its space."""
        return self._id

    @overload
    def append(self, messages: Sequence[Message | Mapping[str, object]], /) -> list[Message]: ...
    @overload
    def append(self, message: Message | Mapping[str, object], /) -> Message: ...
    @overload
    def append(
        self,
        messages: None = None,
        /,
        *,
        role: Role,
        content: str = "",
        id: str = "",
        name: str | None = None,
        at: datetime | None = None,
        calls: Sequence[ToolCall] = (),
        call_id: str | None = None,
        raw: Mapping[str, object] | None = None,
        meta: Mapping[str, object] | None = None,
    ) -> Message: ...
    def append(
        self,
        messages: Sequence[Message | Mapping[str, object]] | Message | Mapping[str, object] | None = None,
        /,
        *,
        role: Role | None = None,
        content: str = "",
        id: str = "",  # noqa: A002 - the name of the field
        name: str | None = None,
        at: datetime | None = None,
        calls: Sequence[ToolCall] = (),
        call_id: str | None = None,
        raw: Mapping[str, object] | None = None,
        meta: Mapping[str, object] | None = None,
    ) -> Message | list[Message]:
        """Store one message, or many in one transaction, and return them as stored.

        When the call returns they are durable, readable and recallable. Give the fields of one message by name; or a
        `Message` or a dict in the OpenAI or Anthropic chat format; or a list of these. The same `id` twice in one chat
        is one message. Calls to one chat from many threads and processes are put in a line; an empty list does nothing.

        Raises:
            InvalidInput: a message is empty, has an unknown role, or is otherwise not a message; none was stored.
            Conflict: another message is stored under the same id; none was stored.

        """
        if messages is None:
            if role is None:
                raise InvalidInput(
                    "There is nothing to append.", "Pass role= and content=, a message, or a list."
                )
            one = Message(
                role,
                content,
                id=id,
                name=name,
                at=at,
                calls=tuple(calls),
                call_id=call_id,
                raw=raw,
                meta=meta or {},
            )
            return self._store([one])[0]
        if isinstance(messages, Message | Mapping):
            return self._store([messages])[0]
        return self._store(_check_list(messages)) if messages else []

    def _store(self, messages: Sequence[Message | Mapping[str, object]]) -> list[Message]:
        opened = self._memory._open  # noqa: SLF001 - a chat is a part of its memory
        now = opened.clock()
        ready = []
        for item in messages:
            message = _normalise(item) if isinstance(item, Message) else payload.parse(item)
            tokens = message_tokens(message, opened.count_tokens)
            ready.append(replace(message, at=message.at or now, tokens=tokens))
        return log.append(opened.database, self._memory.scope, self._id, ready)

    def history(
        self, limit: int | None = None, *, before: int | None = None, after: int | None = None
    ) -> list[Message]:
        """Read messages, oldest first.

        A limit gives the latest; page back with `before=` the first `seq` of what you have. `after=` reads the other
        way: the first messages after that `seq`, from the beginning with `after=0`. An unknown chat has none.

        Raises:
            InvalidInput: a negative number.

        """
        return log.read(
            self._memory._open.database,  # noqa: SLF001 - as above
            self._memory.scope.space,
            self._id,
            limit=None if limit is None else check_count(limit, "limit"),
            before=None if before is None else check_count(before, "before"),
            after=None if after is None else check_count(after, "after"),
        )

    def stats(self) -> ChatStats:
        """Count messages and tokens; all zero for an unknown chat."""
        return log.stats(self._memory._open.database, self._memory.scope.space, self._id)  # noqa: SLF001 - as above

    def window(self, budget: int = 8_000, *, policy: Policy | None = None) -> Window:
        """Choose what a model will see of the session: the newest messages that fit, oldest first.

        Costs what the window costs, however long the session is.

        Args:
            budget: tokens at most; exceeded only by what the policy guarantees, and the window says so.
            policy: how to choose, with its own budget; see `holdfast.context.window`. The default, `FreshTail`, keeps
                the newest messages within the budget and never less than the newest one.

        Raises:
            InvalidInput: a negative budget.

        """
        opened = self._memory._open  # noqa: SLF001 - as above
        stats = self.stats()
        policy = policy or FreshTail(budget)
        expected = expected_messages(policy, stats)
        newest_first = log.backward(opened.database, self._memory.scope.space, self._id, expected)
        return policy.select(newest_first, stats.messages, stats.context_tokens)

    def prompt(
        self,
        budget: int = 8_000,
        query: str | None = None,
        *,
        system: str = "",
        limit: int = 20,
        policy: Policy | None = None,
    ) -> Prompt:
        """Assemble a prompt: system text, what recall finds for the query, and the window, within one budget.

        What was recalled stands in the system text, framed as data, with dates and speakers; what the window shows
        already is not repeated.

        Args:
            budget: tokens at most for all of it.
            query: what to recall; usually the user's newest message. None recalls nothing.
            system: your own instructions, which stand first.
            limit: at most so many recalled messages.
            policy: how to choose the window, within what is left of the budget.

        Raises:
            InvalidInput: a negative budget or limit.

        """
        opened = self._memory._open  # noqa: SLF001 - as above
        stats = self.stats()
        policy = within(policy or FreshTail(check_count(budget, "budget")), budget)
        newest_first = log.backward(
            opened.database, self._memory.scope.space, self._id, expected_messages(policy, stats)
        )
        return build_prompt(
            selector(policy, newest_first, stats),
            self._recalled(query, limit),
            chat=self._id,
            budget=budget,
            count=opened.count_tokens,
            system=system,
        )

    def _recalled(self, query: str | None, limit: int) -> list[Hit]:
        """Recall for a prompt; a query such as a lone emoji has nothing to search for, and that is no error here."""
        if query is None:
            return []
        from holdfast.recall.question import has_words  # noqa: PLC0415 - numpy is loaded by the first recall

        return self._memory.recall(query, limit=limit) if has_words(query) else []

    def rename(self, title: str) -> None:
        """Give the session a title; until then it is the beginning of the first user message.

        Raises:
            InvalidInput: the chat has no messages yet, or the title is blank.

        """
        log.rename(self._memory._open.database, self._memory.scope.space, self._id, title)  # noqa: SLF001 - as above

    def archive(self, *, archived: bool = True) -> None:
        """Put the session away, so that lists leave it out, or bring it back. It stays readable and recallable.

        Raises:
            InvalidInput: the chat has no messages yet.

        """
        log.archive(self._memory._open.database, self._memory.scope.space, self._id, archived=archived)  # noqa: SLF001 - as above

    def __repr__(self) -> str:
        return f"Chat({self._id!r})"


def _check_list(messages: object) -> Sequence[Message | Mapping[str, object]]:
    if not isinstance(messages, Sequence) or isinstance(messages, str | bytes):
        raise InvalidInput(
            f"Cannot append {type(messages).__name__}.",
            "Pass role= and content=, a Message, a dict, or a list.",
        )
    return messages


def _normalise(message: Message) -> Message:
    """Clean the texts of a message; where that changes the content, the original words stay in `raw`."""
    content = clean(message.content)
    for part in (message.id, message.name, message.call_id):
        if part:
            check_name(part, "An id or a name in a message")
    if content == message.content:
        return message
    raw = message.raw or {"role": message.role, "content": message.content}
    return replace(message, content=content, raw=raw)
