-- Processes that share this store, and when each was last seen by this database's own clock.
CREATE TABLE gateways (
    id        TEXT PRIMARY KEY,
    host      TEXT    NOT NULL,
    version   TEXT    NOT NULL,
    joined_at INTEGER NOT NULL,
    seen_at   INTEGER NOT NULL
) STRICT;

-- What one process alone may do. A lease is emptied when it is given back and never deleted: its epoch only
-- grows, so that what an earlier holder writes late is known by it.
CREATE TABLE leases (
    name         TEXT PRIMARY KEY,
    gateway      TEXT,
    epoch        INTEGER NOT NULL,
    -- Of whoever holds it or held it last.
    installation TEXT    NOT NULL,
    host         TEXT    NOT NULL
) STRICT;

-- Takes no row. A write that a holder makes tries to put one here if the lease is no longer its own, and
-- fails by that with all that belongs to it.
CREATE TABLE fence_breaches (
    lease TEXT NOT NULL,
    CONSTRAINT lease_was_lost CHECK (1 = 0)
) STRICT;
