CREATE TABLE imports (
    space TEXT NOT NULL,
    file TEXT NOT NULL,
    digest TEXT NOT NULL,
    account TEXT NOT NULL,
    PRIMARY KEY (space, file)
);
