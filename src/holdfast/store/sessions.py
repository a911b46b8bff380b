"""Sessions: their rows count what the log holds of them, and name them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import Damaged, InvalidInput
from holdfast.store.checksums import resealed
from holdfast.store.database import repeated
from holdfast.store.rows import from_micros
from holdfast.text.masking import mask
from holdfast.text.shorten import shorten_line
from holdfast.types import MAX_COUNT, MAX_NAME, ChatInfo, ChatStats, check_name, scope_of

if TYPE_CHECKING:
    from holdfast.store.database import Database, Value
    from holdfast.types import Scope


def stats(db: Database, space: str, chat: str) -> ChatStats:
    """Count a session; all zero when there is none."""
    with db.reading() as connection:
        rows = connection.all(
            "SELECT length - erased, tokens, tokens - covered_tokens + summary_tokens, oldest, newest, erased, "
            "covered_messages FROM sessions WHERE space = :space AND chat = :chat",
            space=space,
            chat=chat,
        )
    if not rows:
        return ChatStats()
    count, tokens, context, oldest, newest, erased, summarised = rows[0]
    return ChatStats(count, tokens, context, _time(oldest), _time(newest), erased, summarised)


def _time(micros: int) -> datetime:
    try:
        return from_micros(micros)
    except OverflowError as error:
        raise Damaged(
            "A session has a time outside of the calendar.", "Restore a backup of the database."
        ) from error


def length(db: Database, space: str, chat: str) -> int:
    """Give the newest seq of a session; 0 for an unknown one."""
    with db.reading() as connection:
        rows = connection.all(
            "SELECT length FROM sessions WHERE space = :space AND chat = :chat", space=space, chat=chat
        )
    return int(rows[0][0]) if rows else 0


def agent(db: Database, space: str, chat: str, otherwise: str | None = None) -> str:
    """Return the agent that a session belongs to, or `otherwise` where there is no such session.

    Raises:
        InvalidInput: there is no such session, and nothing to return otherwise.

    """
    with db.reading() as connection:
        rows = connection.all(
            "SELECT agent FROM sessions WHERE space = :space AND chat = :chat", space=space, chat=chat
        )
    if rows:
        return str(rows[0][0])
    if otherwise is None:
        raise InvalidInput(f"There is no chat {chat!r} in this space.", "Append a message to it first.")
    return otherwise


# The one statement that crosses spaces: a worker has to find whom to work for. It reads names of spaces only.
_NEXT_SPACE = """
    SELECT min(space) FROM (
        SELECT min(space) AS space FROM sessions WHERE space > :after
        UNION ALL SELECT min(space) AS space FROM jobs WHERE space > :after
        UNION ALL SELECT min(space) AS space FROM records WHERE space > :after
        UNION ALL SELECT min(space) AS space FROM pads WHERE space > :after
    ) AS nearest"""


def next_space(db: Database, after: str) -> str | None:
    """Give the first space after another one, in the order of the database, in which something is stored; None for none."""
    with db.reading() as connection:
        rows = connection.all(_NEXT_SPACE, after=after)
    return None if rows[0][0] is None else str(rows[0][0])


def users(db: Database, tenant: str) -> list[str]:
    """Name the users of a tenant of whom something is stored, and nothing else of them; "" for what all share."""
    found, space = [], next_space(db, "")
    while space is not None:
        scope = scope_of(space)
        if scope.tenant == tenant:
            found.append(scope.user)
        space = next_space(db, space)
    return sorted(found)


class Session(NamedTuple):
    """What the row of a session says about its messages."""

    chat: str
    length: int
    tokens: int
    oldest: int
    newest: int
    erased: int
    covered: int
    covered_messages: int
    covered_tokens: int
    summary_tokens: int


def read_all(db: Database, space: str) -> list[Session]:
    """Read the rows of all sessions of a space, in the order in which they began."""
    with db.reading() as connection:
        rows = connection.all(
            "SELECT chat, length, tokens, oldest, newest, erased, covered, covered_messages, covered_tokens, "
            "summary_tokens FROM sessions WHERE space = :space ORDER BY born",
            space=space,
        )
    return [Session(*row) for row in rows]


def list_chats(
    db: Database, scope: Scope, *, archived: bool | None = False, limit: int | None = None, offset: int = 0
) -> list[ChatInfo]:
    """List the sessions of a scope, most recent first; `archived=None` lists both kinds."""
    with db.reading() as connection:
        rows = connection.all(
            """SELECT chat, title, agent, archived, length - erased, tokens, oldest, newest FROM sessions
            WHERE space = :space AND (:agent = '' OR agent = :agent) AND (:archived < 0 OR archived = :archived)
            ORDER BY newest DESC, born DESC LIMIT :limit OFFSET :offset""",
            space=scope.space,
            agent=scope.agent,
            archived=-1 if archived is None else int(archived),
            limit=MAX_COUNT if limit is None else limit,
            offset=offset,
        )
    return [
        ChatInfo(
            id=chat,
            title=title,
            agent=agent,
            user=scope.user,
            archived=bool(shelved),
            messages=length,
            tokens=tokens,
            oldest=_time(oldest),
            newest=_time(newest),
        )
        for chat, title, agent, shelved, length, tokens, oldest, newest in rows
    ]


def rename(db: Database, space: str, chat: str, title: str) -> None:
    """Give a session another title, with credentials cut out: titles are shown everywhere.

    Raises:
        InvalidInput: there is no such session, or the title is blank.

    """
    _update(
        db,
        "UPDATE sessions SET title = :title WHERE space = :space AND chat = :chat RETURNING chat",
        space=space,
        chat=chat,
        title=shorten_line(mask(check_name(title, "The title", longest=8 * MAX_NAME)), 200),
    )


def archive(db: Database, space: str, chat: str, *, archived: bool) -> None:
    """Put a session away, or bring it back. Its messages stay where they are.

    Raises:
        InvalidInput: there is no such session.

    """
    _update(
        db,
        "UPDATE sessions SET archived = :archived WHERE space = :space AND chat = :chat RETURNING chat",
        space=space,
        chat=chat,
        archived=int(archived),
    )


@repeated
def _update(db: Database, sql: str, *, space: str, chat: str, **values: Value) -> None:
    with db.writing() as tx, resealed(tx, "sessions", space, "chat = :chat", chat=chat):
        if not tx.all(sql, space=space, chat=chat, **values):
            raise InvalidInput(f"There is no chat {chat!r} in this space.", "Append a message to it first.")
