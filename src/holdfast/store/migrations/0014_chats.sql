-- NULL for the chats that are there: when they began to be stored was not noted, and their checksums stay what they are.
ALTER TABLE sessions ADD COLUMN created BIGINT;
ALTER TABLE sessions ADD COLUMN channel TEXT;
ALTER TABLE sessions ADD COLUMN meta TEXT;
