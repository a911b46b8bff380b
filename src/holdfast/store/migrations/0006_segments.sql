DROP TABLE segments;
CREATE TABLE segments (
    space TEXT NOT NULL,
    source TEXT NOT NULL DEFAULT 'message',
    first BIGINT NOT NULL,
    last BIGINT NOT NULL,
    version BIGINT NOT NULL,
    checksum BIGINT NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (space, source, version, first)
);
ALTER TABLE erasures ADD COLUMN rewritten TEXT NOT NULL DEFAULT '[]';
ALTER TABLE erasures ADD COLUMN remains TEXT NOT NULL DEFAULT '{}';
