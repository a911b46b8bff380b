"""The items that readers of files yield: messages of chats, records, and what they leave out."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from holdfast.errors import InvalidInput
from holdfast.port.handles import NewRecord
from holdfast.port.imports import ChatLabel
from holdfast.types import Message

TOO_DEEP = "nested too deeply"


@dataclass(frozen=True, slots=True)
class Owner:
    """The user that a file names as owner, and whether the whole file belongs to that user."""

    user: str
    is_only: bool

    def is_another(self, user: str) -> bool:
        """Return whether the owner is another user. A user without a name takes a file of one owner."""
        return bool(self.user) and self.user != user and (bool(user) or not self.is_only)


@dataclass(frozen=True, slots=True)
class ImportedChat:
    """The chat that messages of a file belong to; an empty title or agent is set by the memory.

    `folder` is where its session was at work, "" if the file does not say so or each message does. `owner` is
    the user whose it is, and `since` is when it began, if the file says so. `by_file` says that it is called
    after its file, having no id.
    """

    id: str
    title: str = ""
    agent: str = ""
    archived: bool = False
    label: ChatLabel | None = field(default=None, compare=False)
    folder: str = field(default="", compare=False)
    owner: Owner | None = None
    since: datetime | None = field(default=None, compare=False)
    by_file: bool = False

    @property
    def lasting_id(self) -> str:
        """The id of the chat as a base for ids of its messages; "" if it is only the name of a file."""
        return "" if self.by_file else self.id


@dataclass(frozen=True, slots=True)
class ImportedMessage:
    """A message, its chat, and its line in JSONL or position in a JSON array; 0 is the whole file.

    `before` is the message as it was said, where something is left out of it.
    """

    chat: ImportedChat
    line: int
    message: Message
    before: Message | None = None


@dataclass(frozen=True, slots=True)
class ImportedRecord:
    """A record of a file, and its line. Its `source` identifies it for ever, and it is stored once.

    `agent` is the one that it belongs to, "" for that of the memory. `owner` is the user whose it is,
    if the file says so.
    """

    line: int
    record: NewRecord
    agent: str = ""
    owner: Owner | None = None

    @property
    def source(self) -> str:
        """The identity of the record among all that is imported."""
        return self.record.get("source", "")


@dataclass(frozen=True, slots=True)
class Skip:
    """Something that is left out, and why; `problem` if it should have been a message."""

    line: int
    reason: str
    problem: bool = False


Item = ImportedMessage | ImportedRecord | Skip


def item_of(chat: ImportedChat, line: int, parse: Callable[..., Message], *args: object) -> Item:
    """Return the message that `parse(*args)` returns, or the reason why there is none."""
    try:
        return ImportedMessage(chat, line, parse(*args))
    except InvalidInput as error:
        return Skip(line, error.what, problem=True)
    except RecursionError:
        return Skip(line, TOO_DEEP, problem=True)


def read_objects(
    values: Iterable[tuple[int, object] | Skip],
    read: Callable[[int, dict[str, object]], Iterator[Item] | None],
    otherwise: str,
) -> Iterator[Item]:
    """Yield the items that `read` finds in JSON objects; skip other values, and those it returns None for."""
    for value in values:
        if isinstance(value, Skip):
            yield value
        elif isinstance(value[1], dict) and (items := read(value[0], value[1])) is not None:
            yield from items
        else:
            yield Skip(value[0], otherwise, problem=True)
