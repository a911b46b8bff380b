"""The branches of a chat: which message each one follows, and which branch is the current one.

The log stays append-only. A message follows the one before it, but for those that are named by a row of
`heads`; so what comes before a message is the same for ever, and a branch is all up to its last message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product, starmap
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from holdfast import types
from holdfast.errors import InvalidInput, shown
from holdfast.safety.guard import mask
from holdfast.store import agenda, jobs, log, records, summaries, table_rows, watermarks
from holdfast.store.checksums import seal
from holdfast.store.database import decoding, first_value, retry_transaction
from holdfast.store.message_rows import as_stored, from_micros, to_row
from holdfast.store.sessions import ON_BRANCH, RECOUNTED
from holdfast.text.shorten import shorten_line
from holdfast.types.references import write_reference

if TYPE_CHECKING:
    from holdfast.store.database import Connection, Database, Reader
    from holdfast.store.prompt_receipts import LastPrompt
    from holdfast.types import Branch, Change, Message, Range, Scope

Action = Literal["rewind", "edit", "regenerate", "switch", "undo"]
_SHOWN = 80  # characters of the beginning of a branch
_LENGTH = "SELECT length FROM sessions WHERE space = :space AND chat = :chat"
_HEADS = "SELECT length + 1, head FROM heads WHERE space = :space AND chat = :chat ORDER BY number"
_SET_ASIDE = """
    UPDATE messages SET aside = :aside
    WHERE space = :space AND chat = :chat AND seq BETWEEN :first AND :last"""
_RECOUNT = f"UPDATE sessions SET {RECOUNTED} WHERE space = :space AND chat = :chat"
_ASIDE = "SELECT seq FROM messages WHERE space = :space AND chat = :chat AND aside = 1"
_ASIDE_DOCS = "SELECT doc FROM messages WHERE space = :space AND aside = 1"
_TOTALS = """
    SELECT count(*), max(at) FROM messages
    WHERE space = :space AND chat = :chat AND seq BETWEEN :first AND :last"""
_REQUEST = f"""
    SELECT max(seq) FROM messages WHERE space = :space AND chat = :chat AND role = 'user' {ON_BRANCH}"""


class ChatTree(NamedTuple):
    """The tree of the messages of a chat: its newest seq, and what those follow that do not follow the last.

    The message after the newest one may be among them.
    """

    length: int
    parents: Mapping[int, int]

    @property
    def head(self) -> int:
        """The last message of the current branch; 0 for none."""
        return self.parents.get(self.length + 1, self.length)

    def path(self, head: int) -> list[Range]:
        """Return the messages up to one, as rising ranges."""
        ranges: list[Range] = []
        while head:
            first = max((fork for fork in self.parents if fork <= head), default=1)
            ranges.append((first, head))
            head = self.parents.get(first, 0)
        return ranges[::-1]

    def heads(self) -> list[int]:
        """Return the last messages of all branches, the current one among them."""
        forks = sorted(fork for fork in self.parents if fork <= self.length)
        ends = {self.length, *(fork - 1 for fork in forks)}.difference(self.parents[fork] for fork in forks)
        return sorted(ends | {self.head}) if self.length else []


class Head(NamedTuple):
    """A row of `heads`."""

    number: int
    chat: str
    before: int
    head: int
    action: Action
    undone: int
    version: int
    agent: str
    at: int


_WRITTEN = f"SELECT {', '.join(Head._fields)} FROM heads WHERE space = :space ORDER BY number DESC"


def tree(db: Reader, space: str, chat: str) -> ChatTree:
    """Return the tree of a chat, that of an unknown one without messages."""
    heads: dict[int, int] = dict(db.all(_HEADS, space=space, chat=chat))
    return ChatTree(first_value(db, int, _LENGTH, space=space, chat=chat) or 0, heads)


def _shared(path: Sequence[Range], other: Sequence[Range]) -> int:
    """Return the last message that two paths have in common; 0 for none."""
    pairs = ((max(mine[0], theirs[0]), min(mine[1], theirs[1])) for mine, theirs in product(path, other))
    return max((last for first, last in pairs if first <= last), default=0)


def _after(path: Sequence[Range], seq: int) -> list[Range]:
    return [(max(first, seq + 1), last) for first, last in path if last > seq]


def is_on(path: Sequence[Range], seq: int) -> bool:
    """Return whether a message is on a path."""
    return any(first <= seq <= last for first, last in path)


def aside(db: Reader, space: str, chat: str) -> set[int]:
    """Return the messages of a chat that are marked as not of its current branch."""
    return {seq for (seq,) in db.all(_ASIDE, space=space, chat=chat)}


def aside_docs(db: Reader, space: str) -> list[int]:
    """Return the document numbers of the messages that are not of the current branches of their chats."""
    return [doc for (doc,) in db.all(_ASIDE_DOCS, space=space)]


def list_branches(db: Reader, space: str, chat: str) -> list[Branch]:
    """Return the branches of a chat in the order of their last messages; see `Chat.branches`."""
    own, branches = tree(db, space, chat), []
    paths = {head: own.path(head) for head in own.heads()}
    for head, path in paths.items():
        common = max((_shared(path, other) for end, other in paths.items() if end != head), default=0)
        totals = [db.all(_TOTALS, space=space, chat=chat, first=first, last=last)[0] for first, last in path]
        begun = log.read(db, space, chat, after=common, limit=1, path=path)
        text = shorten_line(mask(begun[0].content), _SHOWN) if begun else ""
        with decoding(f"Chat {chat!r}"):
            newest = max((from_micros(at) for _, at in totals if at is not None), default=None)
        count = sum(count for count, _ in totals)
        branches.append(types.Branch(chat, head, count, common, newest, text, head == own.head))
    return branches


def path_to(db: Reader, space: str, chat: str, head: int) -> list[Range]:
    """Return the path of the branch with a last message.

    Raises:
        InvalidInput: there is no such branch.

    """
    own = tree(db, space, chat)
    if head not in own.heads():
        what = f"No branch of chat {chat!r} ends with message {shown(head)}."
        raise InvalidInput(what, "Use one of `chat.branches()`.")
    return own.path(head)


def not_on_branch(chat: str, seq: int) -> InvalidInput:
    """Return the error of a message that is not on the current branch of a chat."""
    what = f"Message {shown(seq)} is not on the current branch of chat {chat!r}."
    return InvalidInput(what, "Use the seq of one in `chat.history()`.")


def _mark(tx: Connection, space: str, chat: str, gone: Sequence[Range], back: Sequence[Range]) -> None:
    """Mark messages as of other branches, and then some as of the current one, and count the latter."""
    for is_aside, (first, last) in (*((1, span) for span in gone), *((0, span) for span in back)):
        tx.all(_SET_ASIDE, space=space, chat=chat, aside=is_aside, first=first, last=last)
    tx.all(_RECOUNT, space=space, chat=chat)


class Mover:
    """Moves the head of a chat within a transaction that has locked the space."""

    def __init__(self, tx: Connection, scope: Scope, chat: str, now: int) -> None:
        self.tx, self.scope, self.chat, self.now = tx, scope, chat, now
        self.tree = tree(tx, scope.space, chat)
        self._path = self.tree.path(self.tree.head)

    def move(self, head: int, action: Action, undone: int = 0) -> None:
        """Let the next message follow another one, and mark which messages are aside."""
        space, length, path = self.scope.space, self.tree.length, self.tree.path(head)
        common = _shared(self._path, path)
        number = table_rows.count_up(self.tx, space, "heads")
        row: dict[str, Any] = {"space": space, "chat": self.chat, "number": number, "length": length}
        row |= {"before": self.tree.head, "head": head, "action": action}
        row |= {"undone": undone, "version": records.version(self.tx, space)}
        row |= {"agent": self.scope.agent, "at": self.now}
        table_rows.add(self.tx, "heads", {**row, "checksum": seal("heads", row, self.tx.key)})
        brought = _after(path, common)
        _mark(self.tx, space, self.chat, _after(self._path, common), brought)
        summaries.follow(self.tx, space, self.chat, path)
        watermarks.follow(self.tx, space, self.chat, length, head, brought[0][0] if brought else 0)
        if brought:
            # A watermark that a worker is about to store would pass them.
            jobs.revoke_leases(self.tx, space)
        agenda.touch(self.tx, space)

    def rewind(self, to: int, action: Action = "rewind") -> None:
        """Take back all messages of the branch after one.

        Raises:
            InvalidInput: it is not on the current branch, or a tool call would lose its result.

        """
        if to and not is_on(self._path, to):
            raise not_on_branch(self.chat, to)
        if to == self.tree.head:
            return
        made: set[str] = set()
        for line in log.outline(self.tx, self.scope.space, self.chat, to):
            if not made.issuperset(line.answers):
                what = f"Message {line.seq} has the result of a tool call, which would be left without it."
                raise InvalidInput(what, f"Go to before the call, or to message {line.seq} or a later one.")
            made.update(line.calls)
        self.move(to, action)

    def before(self, seq: int) -> int:
        """Return the message that one follows; 0 for none."""
        if not is_on(self._path, seq):
            raise not_on_branch(self.chat, seq)
        return max((min(last, seq - 1) for first, last in self._path if first < seq), default=0)


@retry_transaction
def rewind(db: Database, scope: Scope, chat: str, to: int, now: int) -> None:
    """Take back all messages of the current branch after one; see `Chat.rewind`."""
    with db.writing_to(scope.space) as tx:
        Mover(tx, scope, chat, now).rewind(to)


@retry_transaction
def edit(
    db: Database, scope: Scope, chat: str, seq: int, new: Message, tokens: int, now: int, prompt: LastPrompt
) -> Message:
    """Take back a message and all after it, and append another one in its place; see `Chat.edit`."""
    row = to_row(new, now, tokens)
    with db.writing_to(scope.space) as tx:
        mover = Mover(tx, scope, chat, now)
        mover.rewind(mover.before(seq), "edit")
        log.append_rows(tx, scope, chat, [row], now, prompt)
    return as_stored(new, row)


@retry_transaction
def regenerate(db: Database, scope: Scope, chat: str, now: int) -> Message:
    """Take back all after the newest request, and return that; see `Chat.regenerate`."""
    with db.writing_to(scope.space) as tx:
        seq = first_value(tx, int, _REQUEST, space=scope.space, chat=chat)
        if seq is None:
            raise InvalidInput(f"Nobody asks for anything in chat {chat!r}.", "Append a request first.")
        Mover(tx, scope, chat, now).rewind(seq, "regenerate")
        return log.read(tx, scope.space, chat, path=[(seq, seq)])[0]


@retry_transaction
def switch(db: Database, scope: Scope, chat: str, head: int, now: int) -> None:
    """Make another branch the current one; see `Chat.switch`."""
    with db.writing_to(scope.space) as tx:
        path_to(tx, scope.space, chat, head)
        mover = Mover(tx, scope, chat, now)
        if head != mover.tree.head:
            mover.move(head, "switch")


def settle(tx: Connection, space: str, chat: str) -> None:
    """Mark anew which messages and summaries of a chat are aside, if it has several branches."""
    own = tree(tx, space, chat)
    if own.parents or aside(tx, space, chat):
        path = own.path(own.head)
        _mark(tx, space, chat, [(1, own.length)], path)
        summaries.follow(tx, space, chat, path)


def undoable(tx: Connection, space: str, agents: Sequence[str] | None) -> Head | None:
    """Return the newest move of a head that is not an undo and was not undone, if any."""
    heads = [Head(*row) for row in tx.all(_WRITTEN, space=space)]
    passed = {head.undone for head in heads}
    left = (head for head in heads if not head.undone and head.number not in passed)
    return next((head for head in left if agents is None or head.agent in agents), None)


def changes(db: Reader, space: str) -> Iterator[Change]:
    """Iterate over the moves of heads of a space as changes, the newest first."""
    for head in starmap(Head, db.all(_WRITTEN, space=space)):
        before, after = (write_reference(head.chat, seq) if seq else None for seq in (head.before, head.head))
        with decoding(f"The branches of chat {head.chat!r}"):
            at = from_micros(head.at)
        yield types.Change(
            version=0,
            action=head.action,
            kind="branch",
            id=f"bra_{head.number}",
            before=before,
            after=after,
            by="system",
            chat=head.chat,
            at=at,
            why=f"of bra_{head.undone}" if head.undone else "",
            agent=head.agent,
        )
