"""PostgreSQL: transactions of one statement each, for one round trip; the row of the space is their lock.

A message that changes other rows than its own and its chat is left to the transaction of `log.append_rows`,
as is the first one of a chat.
"""

from holdfast.store.agenda import TOUCHED
from holdfast.store.checksums import WITH_NUMBERS
from holdfast.store.log import COUNTED
from holdfast.store.prompt_receipts import DELETE_OLDEST, note_statement
from holdfast.store.sessions import OF_AGENT

_SCHEMA = ":schema = (SELECT coalesce(max(version), 0) FROM schema_version)"
_OPEN = f"(title <> '' OR :role <> 'user') AND {OF_AGENT}"
# After it has waited for a lock, a statement sees the newest version of the rows that it updates, and all
# others as they were before: numbers come from the former only. Who appends keeps `docs`; who restores rows
# does not, and then a larger number is there, or is refused. Of a chat that was erased meanwhile `length` is
# NULL, and the message is refused as well, which undoes the count.
APPEND = f"""
    WITH taken AS (
        UPDATE spaces SET docs = docs + 1
        WHERE space = :space AND {_SCHEMA}
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
# A prompt lost in a crash was not answered, so that nobody waits for the disk.
_UNCHANGED = f"""
    SELECT set_config('synchronous_commit', 'off', true) FROM spaces
    WHERE space = :space AND epoch = :epoch AND {_SCHEMA}
    AND EXISTS (SELECT 1 FROM sessions WHERE space = :space AND chat = :chat) FOR UPDATE"""
ALONE = {"append": APPEND, "note": note_statement(_UNCHANGED, f", oldest AS ({DELETE_OLDEST})")}
