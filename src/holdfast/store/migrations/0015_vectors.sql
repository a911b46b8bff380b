CREATE TABLE vector_sets (
    space TEXT NOT NULL,
    model TEXT NOT NULL,
    dimension BIGINT NOT NULL,
    begun BIGINT NOT NULL,
    message BIGINT NOT NULL DEFAULT 0,
    record BIGINT NOT NULL DEFAULT 0,
    summary BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (space, model)
);
CREATE TABLE vectors (
    space TEXT NOT NULL,
    model TEXT NOT NULL,
    source TEXT NOT NULL,
    number BIGINT NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (space, model, source, number)
);
