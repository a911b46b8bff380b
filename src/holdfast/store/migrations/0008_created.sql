-- Until here `at` was the time of storing. What was learned from messages gets the time of the last of them, and the
-- index of records, which holds these times, is made again.
ALTER TABLE records ADD COLUMN created BIGINT NOT NULL DEFAULT 0;
UPDATE records SET created = at;
UPDATE records SET at = coalesce(
    (SELECT m.at FROM messages m WHERE m.space = records.space AND m.chat = records.chat AND m.seq = records.last), at)
WHERE last > 0;
DELETE FROM segments WHERE source = 'record';
