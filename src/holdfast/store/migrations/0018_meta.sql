CREATE TABLE meta_keys (
    space TEXT NOT NULL,
    source TEXT NOT NULL,
    key TEXT NOT NULL,
    done BIGINT NOT NULL,
    PRIMARY KEY (space, source, key)
);
CREATE TABLE meta_values (
    space TEXT NOT NULL,
    source TEXT NOT NULL,
    key TEXT NOT NULL,
    encoded BYTEA NOT NULL,
    number BIGINT NOT NULL,
    chat TEXT NOT NULL,
    PRIMARY KEY (space, source, key, encoded, number, chat)
);
