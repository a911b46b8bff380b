-- Everything Holdfast stores. The space, that of a user, a project or a team, leads every key. Times are microseconds since the epoch,
-- UTC. The number of this schema stands in a table `schema_version`, which is made before these. Checksums are of the row, but for
-- what is said at each.

-- What is known of a space as a whole; a space without a row has epoch and version 0.
CREATE TABLE spaces (
    space TEXT NOT NULL PRIMARY KEY,
    epoch BIGINT NOT NULL,              -- grows when the index was rebuilt, so that other processes load it anew
    version BIGINT NOT NULL DEFAULT 0,  -- of the newest change to a record
    docs BIGINT NOT NULL DEFAULT 0,     -- the newest document number when something was erased, on PostgreSQL at each append: none is used again
    summaries BIGINT NOT NULL DEFAULT 0, -- the newest number of a summary
    labels BIGINT NOT NULL DEFAULT 0,   -- how often the metadata of chats changed
    heads BIGINT NOT NULL DEFAULT 0     -- the newest number of a head
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
    erased BIGINT NOT NULL DEFAULT 0,   -- how many of its messages were erased
    covered BIGINT NOT NULL DEFAULT 0,  -- the seq up to which summaries stand for the messages
    covered_messages BIGINT NOT NULL DEFAULT 0,
    covered_tokens BIGINT NOT NULL DEFAULT 0,
    summary_tokens BIGINT NOT NULL DEFAULT 0, -- of the frontier: the summaries that are part of no other
    created BIGINT,                     -- when its first message was stored; NULL where a salvage lost that
    channel TEXT,                       -- where it takes place, such as 'telegram'; NULL for none
    meta TEXT,                          -- JSON object; NULL for an empty one
    checksum BIGINT NOT NULL,           -- but for what it counts
    joined TEXT,                        -- the other agents that wrote in it, a line break around each; NULL for none
    aside BIGINT NOT NULL DEFAULT 0,    -- how many of its messages are not on its current branch; they count in no other number but `length`
    PRIMARY KEY (space, chat)
);
CREATE INDEX sessions_joined ON sessions (space) WHERE joined IS NOT NULL;

-- The log: append-only, but for erasure.
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
    shown TEXT,                         -- JSON list of what was recalled for the prompt that an assistant answered here
    checksum BIGINT NOT NULL,           -- but for `aside`, which `verify` compares with the heads
    aside BIGINT NOT NULL DEFAULT 0,    -- 1 for one that is not on the current branch of its chat
    PRIMARY KEY (space, chat, seq)
);
CREATE UNIQUE INDEX messages_doc ON messages (space, doc);
CREATE UNIQUE INDEX messages_id ON messages (space, chat, id) WHERE given = 1;
CREATE INDEX messages_aside ON messages (space, doc) WHERE aside = 1;

-- Where chats went on elsewhere than after their newest message: append-only, a row for each rewind, edit, switch and undo. The
-- message after `length` follows the newest of the rows with that length. A chat without a row has one branch.
CREATE TABLE heads (
    space TEXT NOT NULL,
    number BIGINT NOT NULL,             -- 1, 2, 3 … within the space
    chat TEXT NOT NULL,
    length BIGINT NOT NULL,             -- the newest seq of the chat at that moment
    before BIGINT NOT NULL,             -- the message that the next one would have followed; 0 for none
    head BIGINT NOT NULL,               -- the message that the next one follows
    action TEXT NOT NULL,               -- rewind, edit, regenerate, switch, undo
    undone BIGINT NOT NULL,             -- the number of the row that this one takes back; 0 for none
    version BIGINT NOT NULL,            -- of the records at that moment
    agent TEXT NOT NULL,                -- of the handle
    at BIGINT NOT NULL,
    checksum BIGINT NOT NULL,
    PRIMARY KEY (space, number)
);
CREATE INDEX heads_chat ON heads (space, chat, number);

-- Which message made a tool call: finds the call that a result answers, however far back.
CREATE TABLE calls (
    space TEXT NOT NULL,
    chat TEXT NOT NULL,
    call TEXT NOT NULL,
    seq BIGINT NOT NULL,                -- the newest message that used this id; models repeat them
    PRIMARY KEY (space, chat, call)
);

-- The search index: derived from the log and the records, and made again from them at will.
CREATE TABLE segments (
    space TEXT NOT NULL,
    source TEXT NOT NULL,               -- 'message', 'record' or 'summary'
    first BIGINT NOT NULL,              -- covers documents (of records: versions) first … last
    last BIGINT NOT NULL,
    version BIGINT NOT NULL,            -- of the analysis and the layout: each Holdfast reads and writes its own
    checksum BIGINT NOT NULL,           -- CRC-32 of the body
    body BYTEA NOT NULL,
    PRIMARY KEY (space, source, version, first)
);

-- What is known: append-only, one row for each version of a record, which is also one change.
CREATE TABLE records (
    space TEXT NOT NULL,
    version BIGINT NOT NULL,            -- 1, 2, 3 … within the space
    ended BIGINT NOT NULL,              -- the version that took the place of this one; 2^62 while there is none
    id TEXT NOT NULL,
    born BIGINT NOT NULL,               -- the first version of the record: its place in lists
    batch BIGINT NOT NULL,              -- the first of the versions that one call wrote
    undone BIGINT NOT NULL,             -- the batch that this change takes back; 0 for none
    doc BIGINT NOT NULL,                -- the newest message at that moment
    action TEXT NOT NULL,
    writer TEXT NOT NULL,               -- who made this change
    why TEXT NOT NULL,
    kind TEXT NOT NULL,
    author TEXT NOT NULL,               -- who wrote the text
    agent TEXT NOT NULL,                -- whose it is; '' for that of all agents
    target TEXT NOT NULL,               -- what a fact is about, the compartment of a note
    run TEXT NOT NULL,                  -- the run that a note belongs to; '' for none
    chat TEXT NOT NULL,                 -- where it was learned, in the messages first … last; '' and 0 if not said
    first BIGINT NOT NULL,
    last BIGINT NOT NULL,
    category TEXT NOT NULL,
    tags TEXT,                          -- JSON list
    meta TEXT,                          -- JSON object
    priority BIGINT NOT NULL,           -- 1 … 10
    source TEXT NOT NULL,
    sources TEXT,                       -- JSON list: who else said the same
    evidence BIGINT NOT NULL,           -- how often it was said
    trust TEXT NOT NULL,                -- trusted, quarantined, released
    flags TEXT,                         -- JSON list of what the guard found in it
    replaces TEXT NOT NULL,             -- the record whose place it takes when it leaves quarantine; '' for none
    at BIGINT NOT NULL,                 -- when it was said
    since BIGINT,                       -- when it is true in the world
    until BIGINT,
    retracted BIGINT NOT NULL,          -- 0 or 1
    text TEXT NOT NULL,
    wordings TEXT,                      -- JSON list of other words for it: text, who said it, chat, first, last
    created BIGINT NOT NULL,            -- when this version was stored
    checksum BIGINT NOT NULL,           -- but for `ended`
    PRIMARY KEY (space, version)
);
CREATE INDEX records_kind ON records (space, kind, ended);
CREATE INDEX records_id ON records (space, id, version);
CREATE INDEX records_undone ON records (space, undone) WHERE undone > 0;
CREATE INDEX records_chat ON records (space, chat, kind);
CREATE INDEX records_flags ON records (space, kind) WHERE flags IS NOT NULL;

-- Summaries of a session: each a node of a tree over ranges of the log. Append-only, one row for each version of a
-- summary; only the parent of a row and its end are set later.
CREATE TABLE summaries (
    space TEXT NOT NULL,
    number BIGINT NOT NULL,             -- 1, 2, 3 … within the space
    ended BIGINT NOT NULL,              -- the number that took the place of this one; 2^62 while there is none, one less while it covers other branches
    id TEXT NOT NULL,
    chat TEXT NOT NULL,
    depth BIGINT NOT NULL,              -- 0 for a leaf; else one more than that of its children
    first BIGINT NOT NULL,              -- covers the messages first … last
    last BIGINT NOT NULL,
    parent TEXT NOT NULL,               -- the summary that it is a part of; '' for one of the frontier
    messages BIGINT NOT NULL,           -- how many messages those are, and what they cost
    source_tokens BIGINT NOT NULL,
    tokens BIGINT NOT NULL,             -- what it costs in a prompt
    since BIGINT NOT NULL,              -- the times of the earliest and the latest message
    until BIGINT NOT NULL,
    level TEXT NOT NULL,
    model TEXT NOT NULL,                -- '' for none
    at BIGINT NOT NULL,                 -- when it was made
    text TEXT NOT NULL,
    prompt TEXT,                        -- the prompt of the model, such as 'leaf v1'; NULL for none
    checksum BIGINT NOT NULL,           -- but for `ended` and `parent`
    PRIMARY KEY (space, number)
);
CREATE INDEX summaries_parent ON summaries (space, chat, parent, ended, first);
CREATE INDEX summaries_id ON summaries (space, id, ended);

-- How often a record was asked for: counting is no change of it.
CREATE TABLE uses (
    space TEXT NOT NULL,
    id TEXT NOT NULL,
    count BIGINT NOT NULL,
    last BIGINT NOT NULL,
    PRIMARY KEY (space, id)
);

-- What a session knows: the version that its prompts show.
CREATE TABLE snapshots (
    space TEXT NOT NULL,
    chat TEXT NOT NULL,
    version BIGINT NOT NULL,
    shared BIGINT NOT NULL,             -- the version of the space that the tenant shares
    at BIGINT NOT NULL,
    others TEXT,                        -- JSON object: the versions of further spaces that are read; NULL for none
    checksum BIGINT NOT NULL,
    PRIMARY KEY (space, chat)
);

-- Runs of an agent within a session; what they note ends with them.
CREATE TABLE runs (
    space TEXT NOT NULL,
    run TEXT NOT NULL,
    chat TEXT NOT NULL,
    began BIGINT NOT NULL,
    ended BIGINT,
    PRIMARY KEY (space, run)
);

-- Scratchpads: of the user (no chat), of a chat, of a run.
CREATE TABLE pads (
    space TEXT NOT NULL,
    chat TEXT NOT NULL,
    run TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    at BIGINT NOT NULL,
    checksum BIGINT NOT NULL,
    PRIMARY KEY (space, chat, run, name)
);

-- What is left to do later, and how that went: a durable queue. A job that is done stays, and is opened again when there
-- is more of the same to do.
CREATE TABLE jobs (
    space TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,                 -- observe, episode, tidy, reflect, guard, embed
    status TEXT NOT NULL,               -- open, running, done, failed
    record TEXT NOT NULL,               -- two records that may say the same; '' for others
    other TEXT NOT NULL,
    at BIGINT NOT NULL,                 -- when it was left
    agent TEXT NOT NULL,
    chat TEXT NOT NULL DEFAULT '',
    payload TEXT,                       -- JSON object: the text to learn from, where it is not in the log
    due BIGINT NOT NULL DEFAULT 0,      -- not before this time
    attempts BIGINT NOT NULL DEFAULT 0,
    worker TEXT NOT NULL DEFAULT '',    -- who runs it, until `lease`; then it is anybody's again
    lease BIGINT NOT NULL DEFAULT 0,
    ended BIGINT NOT NULL DEFAULT 0,    -- when it was last done or given up; 0 for never
    reason TEXT NOT NULL DEFAULT '',    -- of the last failure: a word, and a sentence
    error TEXT NOT NULL DEFAULT '',
    calls BIGINT NOT NULL DEFAULT 0,    -- what it has cost so far
    prompt_tokens BIGINT NOT NULL DEFAULT 0,
    answer_tokens BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (space, id)
);
CREATE INDEX jobs_due ON jobs (space, status, due);

-- Which spaces a worker is to look at. Derived: without it all spaces are walked.
CREATE TABLE agenda (
    space TEXT NOT NULL,
    worker TEXT NOT NULL,               -- who looks, by what it is able to do; '*' where the space was changed since one did
    due BIGINT NOT NULL,                -- not before this time; 0 of '*', and of the shared space while all others are noted
    PRIMARY KEY (space, worker)
);

-- How far a session was learned from, by each kind of job. Moves in the transaction that stores what was learned.
CREATE TABLE watermarks (
    space TEXT NOT NULL,
    chat TEXT NOT NULL,                 -- '' for what is not about one session
    kind TEXT NOT NULL,
    seq BIGINT NOT NULL,                -- the newest message that was looked at; of records, the newest version
    at BIGINT NOT NULL,                 -- when
    failures BIGINT NOT NULL DEFAULT 0, -- how often the next messages could not be done
    PRIMARY KEY (space, chat, kind)
);

-- What became of each text that was learned: the same one, from the same source, is settled by it for ever.
CREATE TABLE heard (
    space TEXT NOT NULL,
    digest TEXT NOT NULL,               -- of the text, and of where it belongs and came from
    chat TEXT NOT NULL,                 -- '' for a text that nobody said in a chat
    first BIGINT NOT NULL,              -- the messages it was learned from
    last BIGINT NOT NULL,
    record TEXT NOT NULL,               -- what it became, or became part of
    PRIMARY KEY (space, digest)
);
CREATE INDEX heard_chat ON heard (space, chat);
CREATE INDEX heard_record ON heard (space, record);

-- What a guard said of a text: the log itself stays as it is. That of the caller counts; that of our own is kept of long messages.
CREATE TABLE verdicts (
    space TEXT NOT NULL,
    chat TEXT NOT NULL,                 -- '' for a record
    seq BIGINT NOT NULL,                -- of the message; of a record, the version that was judged
    at BIGINT NOT NULL,                 -- when; 0 of our own guard
    guard TEXT NOT NULL,                -- its name; of our own, 'holdfast ' and its version
    flags TEXT NOT NULL,                -- JSON list: what stands in place of the flags of the message
    PRIMARY KEY (space, chat, seq)
);

-- What prompts were made of: one row for each that was answered, and one for each process that waits for the answer to one.
CREATE TABLE receipts (
    space TEXT NOT NULL,
    chat TEXT NOT NULL,
    seq BIGINT NOT NULL,                -- of the message that answered it; 0 while none has
    worker TEXT NOT NULL,               -- the open memory that waits for an answer; '' from then on
    at BIGINT NOT NULL,                 -- when it was made
    version BIGINT NOT NULL,            -- the snapshot that it showed
    shared BIGINT NOT NULL,             -- the same of the space that the tenant shares
    budget BIGINT NOT NULL,
    policy TEXT NOT NULL,               -- JSON list: the name and the parameters
    system TEXT NOT NULL,               -- SHA-256 of the system text that was given; '' for none
    query TEXT NOT NULL,                -- the same of the query
    summary_ids TEXT NOT NULL,          -- JSON list of the summaries that it showed
    hits TEXT NOT NULL,                 -- JSON list of what was recalled, as `shown` of messages
    PRIMARY KEY (space, chat, seq, worker)
);

-- Every call of a model: written before it is asked, with what it may cost, and once more when it has answered.
CREATE TABLE spend (
    space TEXT NOT NULL,
    id TEXT NOT NULL,
    at BIGINT NOT NULL,
    purpose TEXT NOT NULL,              -- the kind of job, or compact, relearn, …
    model TEXT NOT NULL,
    agent TEXT NOT NULL,
    chat TEXT NOT NULL,
    job TEXT NOT NULL,
    prompt_tokens BIGINT NOT NULL,
    answer_tokens BIGINT NOT NULL,
    counted BIGINT NOT NULL,            -- 1 if the provider counted these tokens, 0 if we did
    micros BIGINT NOT NULL,             -- how long it took
    outcome TEXT NOT NULL,              -- asked, answered, or why it failed
    PRIMARY KEY (space, id)
);
CREATE INDEX spend_at ON spend (space, at);

-- Receipts of erasures: what kind, how many, when, by whom; no words.
CREATE TABLE erasures (
    space TEXT NOT NULL,
    id TEXT NOT NULL,
    at BIGINT NOT NULL,
    writer TEXT NOT NULL,
    what TEXT NOT NULL,
    counts TEXT NOT NULL,               -- JSON object
    docs TEXT NOT NULL,                 -- JSON list of the document numbers that are gone, as [first, last]
    versions TEXT NOT NULL,             -- the same of versions of records
    digest TEXT NOT NULL,               -- keyed hash of what was erased
    number BIGINT NOT NULL,             -- 1, 2, 3 … within the database
    rewritten TEXT NOT NULL DEFAULT '[]', -- JSON list of what was written anew
    remains TEXT NOT NULL DEFAULT '{}', -- JSON object: what was not, and why
    checksum BIGINT NOT NULL,           -- but for `number`, `rewritten` and `remains`
    PRIMARY KEY (space, id)
);

-- Files that were imported to their end, so that they are not read again as long as they are the same. An erasure forgets
-- all of them: what was erased may be imported again.
CREATE TABLE imports (
    space TEXT NOT NULL,
    file TEXT NOT NULL,                 -- a hash of where it is, and of the agent that it was imported for
    digest TEXT NOT NULL,               -- a hash of what is in it, and of the version that read it
    account TEXT NOT NULL,              -- JSON object: the chats, the number of messages, and what was left out
    PRIMARY KEY (space, file)
);

-- The embedders that made vectors, and how far each has come. When one is complete, the sets of all others go.
CREATE TABLE vector_sets (
    space TEXT NOT NULL,
    model TEXT NOT NULL,                -- the name of the embedder
    dimension BIGINT NOT NULL,          -- the numbers of a vector; 0 while none is known
    begun BIGINT NOT NULL,              -- when: a set that was begun anew is another one
    message BIGINT NOT NULL DEFAULT 0,  -- the newest message that was embedded, with all before it; by number of the document
    record BIGINT NOT NULL DEFAULT 0,   -- the same of versions of records
    summary BIGINT NOT NULL DEFAULT 0,  -- and of summaries
    PRIMARY KEY (space, model)
);

-- What recall by meaning compares: not derived, as they cost money. Erased with what they were made of.
CREATE TABLE vectors (
    space TEXT NOT NULL,
    model TEXT NOT NULL,
    source TEXT NOT NULL,               -- 'message', 'record' or 'summary'
    number BIGINT NOT NULL,             -- of the document: of a message `doc`, of a record its version
    body BYTEA NOT NULL,                -- of length 1: each number times 32767, in two bytes, the lower first
    PRIMARY KEY (space, model, source, number)
);

-- Rights on a space that others have: append-only, a row for each grant, and one without rights for each revocation.
CREATE TABLE grants (
    space TEXT NOT NULL,                -- what is granted
    number BIGINT NOT NULL,             -- 1, 2, 3 … within the space
    ended BIGINT NOT NULL,              -- the number that took the place of this one; 2^62 while there is none
    id TEXT NOT NULL,
    grantee TEXT NOT NULL,              -- the user of the tenant who has the rights
    rights TEXT NOT NULL,               -- read, or write, which covers it; '' for a revocation
    writer TEXT NOT NULL,
    actor TEXT NOT NULL,                -- the user who granted it; '' for the application
    at BIGINT NOT NULL,
    why TEXT NOT NULL,
    checksum BIGINT NOT NULL,
    PRIMARY KEY (space, number)
);
CREATE INDEX grants_grantee ON grants (space, grantee, ended);

-- Which version of a record in another space a move or a copy made: an undo takes both back.
CREATE TABLE moves (
    space TEXT NOT NULL,
    version BIGINT NOT NULL,            -- of the record here
    other TEXT NOT NULL,                -- the other space
    other_version BIGINT NOT NULL,
    PRIMARY KEY (space, version)
);

-- What adapters keep of a framework that is no message: bytes under keys, which only the framework reads.
CREATE TABLE items (
    space TEXT NOT NULL,
    chat TEXT NOT NULL,                 -- '' for what belongs to no chat
    collection TEXT NOT NULL,           -- of which adapter, and of what kind
    key BYTEA NOT NULL,                 -- UTF-8: both databases order bytes alike
    data BYTEA NOT NULL,
    revision BIGINT NOT NULL,           -- how often it was written
    at BIGINT NOT NULL,                 -- when it was last written
    expires BIGINT,                     -- when it ceases to be there; NULL for never
    checksum BIGINT NOT NULL,
    PRIMARY KEY (space, chat, collection, key)
);
CREATE INDEX items_expires ON items (space, expires) WHERE expires IS NOT NULL;
