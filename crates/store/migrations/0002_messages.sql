-- A message is written here before the platform is told that we have it.
CREATE TABLE inbox (
    id           INTEGER PRIMARY KEY,
    platform     TEXT    NOT NULL,
    -- The platform's own name for the update: the same one twice is one message.
    update_id    TEXT    NOT NULL,
    conversation TEXT    NOT NULL,
    payload      TEXT    NOT NULL,
    state        TEXT    NOT NULL
                 CHECK (state IN ('accepted', 'working', 'answered', 'refused', 'failed')),
    received_at  INTEGER NOT NULL,
    ended_at     INTEGER,
    attempts     INTEGER NOT NULL DEFAULT 0,
    note         TEXT,
    UNIQUE (platform, update_id)
) STRICT;

CREATE INDEX inbox_open ON inbox (id) WHERE state IN ('accepted', 'working');

-- What a turn was about to do and what came of it: begun without an end means nobody knows.
CREATE TABLE tool_calls (
    message   INTEGER NOT NULL REFERENCES inbox (id) ON DELETE CASCADE,
    call      TEXT    NOT NULL,
    tool      TEXT    NOT NULL,
    arguments TEXT    NOT NULL,
    begun_at  INTEGER NOT NULL,
    ended_at  INTEGER,
    result    TEXT,
    PRIMARY KEY (message, call)
) STRICT;

CREATE TABLE history (
    id           INTEGER PRIMARY KEY,
    conversation TEXT    NOT NULL,
    message      TEXT    NOT NULL,
    at           INTEGER NOT NULL
) STRICT;

CREATE INDEX history_of ON history (conversation, id);

-- A reply is written here before it is sent. Found 'sending' after a crash, it is sent again and
-- marked as a possible duplicate.
CREATE TABLE deliveries (
    id        INTEGER PRIMARY KEY,
    message   INTEGER REFERENCES inbox (id) ON DELETE CASCADE,
    platform  TEXT    NOT NULL,
    -- Where to, as the platform's crate wrote it.
    address   TEXT    NOT NULL,
    text      TEXT    NOT NULL,
    state     TEXT    NOT NULL CHECK (state IN ('pending', 'sending', 'sent', 'failed')),
    attempts  INTEGER NOT NULL DEFAULT 0,
    queued_at INTEGER NOT NULL,
    sent_at   INTEGER,
    note      TEXT
) STRICT;

CREATE INDEX deliveries_open ON deliveries (id) WHERE state IN ('pending', 'sending');

-- Small things with one owner each (pairings, a long poll's offset), replaced whole.
CREATE TABLE documents (
    name    TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    body    TEXT    NOT NULL
) STRICT;
