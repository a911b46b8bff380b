-- Rights on a space that others have: append-only, a row for each grant, and one without rights for each revocation.
CREATE TABLE grants (
    space TEXT NOT NULL,
    number BIGINT NOT NULL,
    ended BIGINT NOT NULL,
    id TEXT NOT NULL,
    grantee TEXT NOT NULL,
    rights TEXT NOT NULL,
    writer TEXT NOT NULL,
    actor TEXT NOT NULL,
    at BIGINT NOT NULL,
    why TEXT NOT NULL,
    checksum BIGINT,
    PRIMARY KEY (space, number)
);
CREATE INDEX grants_grantee ON grants (space, grantee, ended);
-- NULL for the chats that are there: their prompts show the user's space and the shared one only.
ALTER TABLE snapshots ADD COLUMN others TEXT;
-- Which version of a record in another space a move or a copy made: an undo takes both back.
CREATE TABLE moves (
    space TEXT NOT NULL,
    version BIGINT NOT NULL,
    other TEXT NOT NULL,
    other_version BIGINT NOT NULL,
    PRIMARY KEY (space, version)
);
