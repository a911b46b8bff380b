CREATE TABLE summaries (
    space TEXT NOT NULL,
    number BIGINT NOT NULL,
    ended BIGINT NOT NULL,
    id TEXT NOT NULL,
    chat TEXT NOT NULL,
    depth BIGINT NOT NULL,
    first BIGINT NOT NULL,
    last BIGINT NOT NULL,
    parent TEXT NOT NULL,
    messages BIGINT NOT NULL,
    source_tokens BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    since BIGINT NOT NULL,
    until BIGINT NOT NULL,
    level TEXT NOT NULL,
    model TEXT NOT NULL,
    at BIGINT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (space, number)
);
CREATE INDEX summaries_parent ON summaries (space, chat, parent, first);
CREATE INDEX summaries_id ON summaries (space, id);
ALTER TABLE spaces ADD COLUMN summaries BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN covered BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN covered_messages BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN covered_tokens BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN summary_tokens BIGINT NOT NULL DEFAULT 0;
