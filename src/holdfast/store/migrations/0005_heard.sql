CREATE TABLE heard (
    space TEXT NOT NULL,
    digest TEXT NOT NULL,
    chat TEXT NOT NULL,
    first BIGINT NOT NULL,
    last BIGINT NOT NULL,
    record TEXT NOT NULL,
    PRIMARY KEY (space, digest)
);
CREATE INDEX heard_chat ON heard (space, chat);
CREATE INDEX heard_record ON heard (space, record);
