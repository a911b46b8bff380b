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
from holdfast.store import log, sessions
from holdfast.store.rows import dump, to_micros
from holdfast.text.clean import clean
from holdfast.text.tokens import estimate_tokens, message_tokens
from holdfast.types import (
    ChatStats,
    Hit,
    Message,
    Prompt,
    Role,
    ToolCall,
    Window,
    check_count,
    check_flag,
    check_name,
)

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
                calls=tuple(calls or ()),
                call_id=call_id,
                raw=raw,
                meta=meta or {},
            )
            return self._store([one])[0]
        if any((role, content, id, name, at, calls, call_id, raw, meta)):
            raise InvalidInput(
                "A message was given, and fields of a message beside it.", "Put the fields into the message."
            )
        if isinstance(messages, Message | Mapping):
            return self._store([messages])[0]
        return self._store(messages) if _check_list(messages) else []

    def _store(self, messages: Sequence[Message | Mapping[str, object]]) -> list[Message]:
        opened = self._memory._open  # noqa: SLF001 - a chat is a part of its memory
        ready = [_ready(item) for item in messages]
        count = opened.count_tokens
        tokens = [message_tokens(message, count) for message in ready]
        if count is not estimate_tokens:
            tokens = [check_count(number, "count_tokens") for number in tokens]
        now = to_micros(opened.clock())
        return log.append(opened.database, self._memory.scope, self._id, ready, tokens, now)

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
        return sessions.stats(self._memory._open.database, self._memory.scope.space, self._id)  # noqa: SLF001 - as above

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
        sessions.rename(self._memory._open.database, self._memory.scope.space, self._id, title)  # noqa: SLF001 - as above

    def archive(self, *, archived: bool = True) -> None:
        """Put the session away, so that lists leave it out, or bring it back. It stays readable and recallable.

        Raises:
            InvalidInput: the chat has no messages yet.

        """
        check_flag(archived, "archived")
        sessions.archive(self._memory._open.database, self._memory.scope.space, self._id, archived=archived)  # noqa: SLF001 - as above

    def __repr__(self) -> str:
        return f"Chat({self._id!r})"


def _check_list(messages: object) -> Sequence[Message | Mapping[str, object]]:
    if not isinstance(messages, Sequence) or isinstance(messages, str | bytes):
        raise InvalidInput(
            f"Cannot append {type(messages).__name__}.",
            "Pass role= and content=, a Message, a dict, or a list.",
        )
    return messages


def _ready(item: Message | Mapping[str, object]) -> Message:
    message = _normalise(item) if isinstance(item, Message) else payload.parse(item)
    _check(message)
    return message


def _normalise(message: Message) -> Message:
    """Clean the content of a message; where that loses something, the original words stay in `raw`."""
    content = clean(message.content)
    if content == message.content:
        return message
    joined = message.content.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    raw = message.raw if content == joined else message.raw or {"role": message.role, "content": joined}
    return replace(message, content=content, raw=raw)


def _check(message: Message) -> None:
    """Raise InvalidInput where a part of a message is not what its type says, or fits only one of the databases."""
    for name in (message.id, message.name):
        if name not in ("", None):
            check_name(name, "An id or a name in a message")
    for value, what in ((message.raw, "raw"), (message.meta, "meta")):
        if value is not None and not isinstance(value, Mapping):
            raise InvalidInput(
                f"`{what}` must be a dict, not {type(value).__name__}.", "Pass a dict of JSON values."
            )
    lists: tuple[object, object] = message.calls, message.answers
    if not all(isinstance(value, tuple) for value in lists):
        raise InvalidInput("The `calls` and `answers` of a Message must be tuples.", "Pass tuples.")
    if message.call_id is not None:
        _check_call_text(message.call_id)
    for answer in message.answers:
        _check_call_text(answer)
    for call in message.calls:
        if not isinstance(call, ToolCall):
            raise InvalidInput(f"A tool call is {type(call).__name__}.", "Pass a ToolCall.")
        if not isinstance(call.arguments, Mapping | str):
            raise InvalidInput(
                f"The arguments of a tool call are {type(call.arguments).__name__}.",
                "Use a dict or JSON text.",
            )
        _check_call_text(call.id)
        _check_call_text(call.name)
        dump(call.arguments, "The arguments of a tool call")  # before their tokens are counted


def _check_call_text(text: object) -> None:
    if not isinstance(text, str) or clean(text) != text:
        raise InvalidInput(
            f"{text!r} cannot be the id or the name of a tool call.",
            "Use text without NUL or lone surrogates.",
        )
