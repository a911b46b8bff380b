-- The log and its index. The table of versions is there before the first migration, which takes its number in it.

-- What is known of a space as a whole; a space without a row has epoch 0.
CREATE TABLE spaces (
    space TEXT NOT NULL PRIMARY KEY,
    epoch BIGINT NOT NULL               -- grows when the index was rebuilt, so that other processes load it anew
);

CREATE TABLE sessions (
    space TEXT NOT NULL,
    chat TEXT NOT NULL,
    agent TEXT NOT NULL,                -- who opened it; '' for none
    title TEXT NOT NULL,
    archived BIGINT NOT NULL,           -- 0 or 1
    length BIGINT NOT NULL,             -- messages so far: also the newest seq
    tokens BIGINT NOT NULL,
    oldest BIGINT NOT NULL,
    newest BIGINT NOT NULL,
    born BIGINT NOT NULL,               -- the document number of its first message: breaks ties in lists
    PRIMARY KEY (space, chat)
);

-- The log: append-only.
CREATE TABLE messages (
    space TEXT NOT NULL,
    chat TEXT NOT NULL,
    seq BIGINT NOT NULL,                -- 1, 2, 3 … within the chat
    doc BIGINT NOT NULL,                -- 1, 2, 3 … within the space
    id TEXT NOT NULL,                   -- unique within the chat
    given BIGINT NOT NULL,              -- 1 if the caller gave the id; ours begin with the document number instead
    role TEXT NOT NULL,
    name TEXT,
    at BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    content TEXT NOT NULL,
    calls TEXT,                         -- JSON list of an assistant's tool calls
    call_id TEXT,                       -- the call that a tool message says it answers
    answers TEXT,                       -- JSON list of the calls of this chat that it does answer
    raw TEXT,                           -- the payload as JSON; '' when it is just {role, content}
    meta TEXT,                          -- JSON object
    PRIMARY KEY (space, chat, seq)
);
CREATE UNIQUE INDEX messages_doc ON messages (space, doc);
CREATE UNIQUE INDEX messages_id ON messages (space, chat, id) WHERE given = 1;

-- Which message made a tool call: finds the call that a result answers, however far back.
CREATE TABLE calls (
    space TEXT NOT NULL,
    chat TEXT NOT NULL,
    call TEXT NOT NULL,
    seq BIGINT NOT NULL,                -- the newest message that used this id; models repeat them
    PRIMARY KEY (space, chat, call)
);

-- The search index: derived from the log, and made again from it at will.
CREATE TABLE segments (
    space TEXT NOT NULL,
    first BIGINT NOT NULL,              -- covers documents first … last
    last BIGINT NOT NULL,
    version BIGINT NOT NULL,            -- of the analysis and the layout; another version is not read
    checksum BIGINT NOT NULL,           -- CRC-32 of the body
    body BYTEA NOT NULL,
    PRIMARY KEY (space, first)
);
