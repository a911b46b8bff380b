CREATE TABLE verdicts (
    space TEXT NOT NULL,
    chat TEXT NOT NULL,
    seq BIGINT NOT NULL,
    at BIGINT NOT NULL,
    guard TEXT NOT NULL,
    flags TEXT NOT NULL,
    PRIMARY KEY (space, chat, seq)
);
