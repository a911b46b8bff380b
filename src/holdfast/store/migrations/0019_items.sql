CREATE TABLE items (
    space TEXT NOT NULL,
    chat TEXT NOT NULL,
    collection TEXT NOT NULL,
    key BYTEA NOT NULL,
    data BYTEA NOT NULL,
    revision BIGINT NOT NULL,
    at BIGINT NOT NULL,
    expires BIGINT,
    checksum BIGINT,
    PRIMARY KEY (space, chat, collection, key)
);
CREATE INDEX items_expires ON items (space, expires) WHERE expires IS NOT NULL;
