-- A background process is written here before it is started and struck out when it has ended and
-- whoever wanted to know has been told.
CREATE TABLE processes (
    id           TEXT PRIMARY KEY,
    conversation TEXT    NOT NULL,
    sandbox      TEXT    NOT NULL,
    -- What it is and who wants to know, as the tools wrote it.
    terms        TEXT    NOT NULL,
    begun_at     INTEGER NOT NULL
) STRICT;

CREATE INDEX processes_of ON processes (conversation);
