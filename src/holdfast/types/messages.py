"""Messages and tool calls, and how their speakers are named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, cast

from holdfast.errors import InvalidInput, shown
from holdfast.types.reprs import brief

Role = Literal["system", "developer", "user", "assistant", "tool"]
ROLES: tuple[Role, ...] = ("system", "developer", "user", "assistant", "tool")

_Flagged = TypeVar("_Flagged")


class _HasFlags(Protocol):
    @property
    def flags(self) -> tuple[str, ...]: ...


class _Unseen(tuple["_HasFlags", ...]):
    """Stand for flags that are found when they are read: those of the message within, or else of its own."""

    __slots__ = ()


UNSEEN = cast("tuple[str, ...]", _Unseen())  # of a message that the guard has not looked at
_FINDERS: list[Callable[[Message], tuple[str, ...]]] = []
_SLOTS: dict[type, Callable[[object], tuple[str, ...]]] = {}


def find_flags_with(find: Callable[[Message], tuple[str, ...]]) -> None:
    """Use `find` for the flags of messages that were not looked at, from now on."""
    _FINDERS[:] = [find]


def flags_like(message: _HasFlags) -> tuple[str, ...]:
    """Return the unread flags of a message for an object that is made of it."""
    return cast("tuple[str, ...]", _Unseen((message,)))


def changed(item: _Flagged, **fields: object) -> _Flagged:
    """Return a message, or an object made of one, with other values of some fields and its flags unread."""
    # Typed by `with_flags_when_read`, which takes dataclasses.
    made: Any = item
    return cast("_Flagged", replace(made, flags=flags_like(made), **fields))


def are_flags_unread(item: _HasFlags) -> bool:
    """Return whether the flags of a message, or of an object made of one, are still to be found."""
    known = _SLOTS[type(item)](item)
    # Typed as texts, of which it is no tuple.
    inner = cast("object", known)
    return isinstance(inner, _Unseen) and all(map(are_flags_unread, inner))


def with_flags_when_read(cls: type[_Flagged]) -> type[_Flagged]:
    """Let a class of messages, or of objects made of them, compute `flags` when they are first read."""
    slot = vars(cls)["flags"]
    _SLOTS[cls] = slot.__get__

    def flags(item: Message) -> tuple[str, ...]:
        known: tuple[str, ...] | _Unseen = slot.__get__(item)
        if isinstance(known, _Unseen):
            known = known[0].flags if known else _FINDERS[0](item)
            slot.__set__(item, known)
        return known

    type.__setattr__(cls, "flags", property(flags, slot.__set__))
    return cls


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool by an assistant; `arguments` is text when the model's JSON was not an object."""

    id: str
    name: str
    arguments: Mapping[str, object] | str = field(default_factory=dict, hash=False)


@with_flags_when_read
@dataclass(frozen=True, slots=True)
class Message:
    """A message of a chat.

    `seq` counts 1, 2, 3 … within its chat; it and `tokens` are 0 before the message is stored. `id` is yours
    or made at append; the same id twice in one chat is one message. `at` is the time when it was said.
    `calls` are an assistant's tool calls, `call_id` the call that a tool message answers, `answers` all calls
    of this chat that it answers (resolved at append; empty when the call is not in the chat). `raw` is the
    payload it was made from, verbatim. `flags` name what the guard finds in a stored message, such as
    "instruction" or "secret", the latter also in its calls and its name; it looks when they are first read.
    `shown` names what was recalled for the prompt that an assistant's message answers: ids of records, and
    `chat#seq` of messages, of another space `space|chat#seq`.

    Raises:
        InvalidInput: an unknown role, content that is not text, blank content (but for an assistant's message
            with the payload that it came as), or a part that does not fit the role.

    """

    role: Role
    content: str = ""
    seq: int = field(default=0, kw_only=True)
    id: str = field(default="", kw_only=True)
    name: str | None = field(default=None, kw_only=True)
    at: datetime | None = field(default=None, kw_only=True)
    tokens: int = field(default=0, kw_only=True)
    calls: tuple[ToolCall, ...] = field(default=(), kw_only=True)
    call_id: str | None = field(default=None, kw_only=True)
    answers: tuple[str, ...] = field(default=(), kw_only=True)
    raw: Mapping[str, object] | None = field(default=None, kw_only=True, hash=False)
    meta: Mapping[str, object] = field(default_factory=dict, kw_only=True, hash=False)
    flags: tuple[str, ...] = field(default=(), kw_only=True)
    shown: tuple[str, ...] = field(default=(), kw_only=True)

    __repr__ = brief

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise InvalidInput(f"Unknown role {shown(self.role)}.", f"Use one of {', '.join(ROLES)}.")
        if not isinstance(self.content, str):
            raise InvalidInput(
                f"The content of a message must be text, not {type(self.content).__name__}.",
                "Pass a string, or append the whole chat-format dict.",
            )
        if self.calls and self.role != "assistant":
            raise InvalidInput(
                f"A message of role {self.role!r} cannot call tools.", "Use the role 'assistant'."
            )
        if self.role != "tool":
            if self.call_id is not None or self.answers:
                raise InvalidInput(
                    f"A message of role {self.role!r} cannot answer a call.", "Use the role 'tool'."
                )
            # The answer of a model may have no words.
            if not self.calls and (self.role != "assistant" or self.raw is None):
                check_words(self.content)
        if self.at is not None and not isinstance(self.at, datetime):
            raise InvalidInput(f"`at` must be a datetime, not {type(self.at).__name__}.", "Pass a datetime.")

    @property
    def actor(self) -> str:
        """The speaker: the name where there is one, else the role.

        A name that could be taken for a role, and every name of a tool, stands behind the role.
        """
        return speaker(self.role, self.name)


def check_words(content: str) -> None:
    """Raise InvalidInput if the content of a message is blank."""
    if not content or content.isspace():
        raise InvalidInput(
            f"The message {'has only white space' if content else 'is empty'}.",
            "Give it content, or do not append it.",
        )


class Dumpable(Protocol):
    """An object with `model_dump`, such as a model of pydantic, as the clients of providers return it."""

    def model_dump(self, *, mode: str) -> Mapping[str, object]:
        """Return a dict of JSON values for `mode="json"`."""
        ...


AnyMessage: TypeAlias = Message | Mapping[str, object] | Dumpable
"""What `append` takes."""

_ROLE_STARTS = frozenset(role[:4] for role in ROLES)
_DISGUISES: list[Callable[[str], str]] = []


def undo_disguises_with(read: Callable[[str], str]) -> None:
    """Use `read`, which undoes look-alike letters, for names that are not ASCII, from now on."""
    _DISGUISES[:] = [read]


def speaker(role: str, name: str | None) -> str:
    """Return the speaker: the name, behind the role if it could be taken for a role, or the role alone."""
    if not name or name == role:
        return role
    if role == "tool" or not name[0].isalnum() or not name.isascii() or name[:4].casefold() in _ROLE_STARTS:
        return f"{role} {name}" if role == "tool" or _poses_as_role(name) else name
    return name


def _poses_as_role(name: str) -> bool:
    """Return whether a name looks like that of a role, or like none."""
    if not name.isascii():
        for read in _DISGUISES:
            name = read(name)
    words = "".join(char if char.isalpha() else " " for char in name.casefold()).split()
    return not words or not name.lstrip()[:1].isalnum() or words[0] in ROLES
