ALTER TABLE spaces ADD COLUMN version BIGINT NOT NULL DEFAULT 0;
ALTER TABLE spaces ADD COLUMN docs BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN erased BIGINT NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN flags TEXT;

DROP TABLE segments;
CREATE TABLE segments (
    space TEXT NOT NULL,
    source TEXT NOT NULL DEFAULT 'message',
    first BIGINT NOT NULL,
    last BIGINT NOT NULL,
    version BIGINT NOT NULL,
    checksum BIGINT NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (space, source, first)
);

CREATE TABLE records (
    space TEXT NOT NULL,
    version BIGINT NOT NULL,
    ended BIGINT NOT NULL,
    id TEXT NOT NULL,
    born BIGINT NOT NULL,
    batch BIGINT NOT NULL,
    undone BIGINT NOT NULL,
    doc BIGINT NOT NULL,
    action TEXT NOT NULL,
    writer TEXT NOT NULL,
    why TEXT NOT NULL,
    kind TEXT NOT NULL,
    author TEXT NOT NULL,
    agent TEXT NOT NULL,
    target TEXT NOT NULL,
    run TEXT NOT NULL,
    chat TEXT NOT NULL,
    first BIGINT NOT NULL,
    last BIGINT NOT NULL,
    category TEXT NOT NULL,
    tags TEXT,
    meta TEXT,
    priority BIGINT NOT NULL,
    source TEXT NOT NULL,
    sources TEXT,
    evidence BIGINT NOT NULL,
    trust TEXT NOT NULL,
    flags TEXT,
    replaces TEXT NOT NULL,
    at BIGINT NOT NULL,
    since BIGINT,
    until BIGINT,
    retracted BIGINT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (space, version)
);
CREATE INDEX records_kind ON records (space, kind, ended);
CREATE INDEX records_id ON records (space, id, version);
CREATE INDEX records_undone ON records (space, undone) WHERE undone > 0;

CREATE TABLE uses (
    space TEXT NOT NULL,
    id TEXT NOT NULL,
    count BIGINT NOT NULL,
    last BIGINT NOT NULL,
    PRIMARY KEY (space, id)
);

CREATE TABLE snapshots (
    space TEXT NOT NULL,
    chat TEXT NOT NULL,
    version BIGINT NOT NULL,
    shared BIGINT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (space, chat)
);

CREATE TABLE runs (
    space TEXT NOT NULL,
    run TEXT NOT NULL,
    chat TEXT NOT NULL,
    began BIGINT NOT NULL,
    ended BIGINT,
    PRIMARY KEY (space, run)
);

CREATE TABLE pads (
    space TEXT NOT NULL,
    chat TEXT NOT NULL,
    run TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (space, chat, run, name)
);

CREATE TABLE jobs (
    space TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    status TEXT NOT NULL,
    record TEXT NOT NULL,
    other TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (space, id)
);

CREATE TABLE erasures (
    space TEXT NOT NULL,
    id TEXT NOT NULL,
    at BIGINT NOT NULL,
    writer TEXT NOT NULL,
    what TEXT NOT NULL,
    counts TEXT NOT NULL,
    docs TEXT NOT NULL,
    versions TEXT NOT NULL,
    digest TEXT NOT NULL,
    number BIGINT NOT NULL,
    PRIMARY KEY (space, id)
);
