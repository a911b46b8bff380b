CREATE TABLE receipts (
    space TEXT NOT NULL,
    chat TEXT NOT NULL,
    seq BIGINT NOT NULL,
    worker TEXT NOT NULL,
    at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    shared BIGINT NOT NULL,
    budget BIGINT NOT NULL,
    policy TEXT NOT NULL,
    system TEXT NOT NULL,
    query TEXT NOT NULL,
    summary_ids TEXT NOT NULL,
    hits TEXT NOT NULL,
    PRIMARY KEY (space, chat, seq, worker)
);
