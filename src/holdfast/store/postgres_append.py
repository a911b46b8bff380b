"""PostgreSQL: the append of one message as one statement.

The row of the space is lock and counter. A message that changes other rows than this one and its chat is
left to the transaction of `log.append_rows`, as is the first one of a chat.
"""

from holdfast.store.agenda import TOUCHED
from holdfast.store.checksums import WITH_NUMBERS
from holdfast.store.log import COUNTED
from holdfast.store.sessions import OF_AGENT

_OPEN = f"(title <> '' OR :role <> 'user') AND {OF_AGENT}"
# After it has waited for a lock, a statement sees the newest version of the rows that it updates, and all
# others as they were before: numbers come from the former only. Who appends keeps `docs`; who restores rows
# does not, and then a larger number is there, or is refused. Of a chat that was erased meanwhile `length` is
# NULL, and the message is refused as well, which undoes the count.
APPEND = f"""
    WITH taken AS (
        UPDATE spaces SET docs = docs + 1
        WHERE space = :space AND :version = (SELECT coalesce(max(version), 0) FROM schema_version)
        AND EXISTS (SELECT 1 FROM sessions WHERE space = :space AND chat = :chat AND {_OPEN})
        AND docs >= (SELECT coalesce(max(doc), 0) FROM messages WHERE space = :space)
        AND (:role <> 'assistant' OR :shown <> ''
            OR NOT EXISTS (SELECT 1 FROM receipts WHERE space = :space AND chat = :chat))
        RETURNING docs
    ), counted AS (
        UPDATE sessions SET {COUNTED} FROM taken WHERE space = :space AND chat = :chat AND {_OPEN}
        RETURNING length
    ), touched AS (
        INSERT INTO agenda (space, worker, due) SELECT :space, '{TOUCHED}', 0 FROM taken
        ON CONFLICT (space, worker) DO NOTHING
    )
    INSERT INTO messages (
        space, chat, seq, doc, id, given, role, name, at, tokens, content, raw, meta, shown, checksum)
    SELECT :space, :chat, length, docs, lpad(to_hex(docs), 12, '0') || :id, 0, :role, :name, :oldest, :tokens,
        :content, :raw, :meta, :shown, {WITH_NUMBERS}
    FROM taken LEFT JOIN counted ON 1 = 1
    RETURNING seq, id"""
