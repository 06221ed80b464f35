-- As the step of the same number for SQLite. A program of the step before knows none of these tables.
CREATE TABLE gateways (
    id        TEXT COLLATE "C" PRIMARY KEY,
    host      TEXT COLLATE "C" NOT NULL,
    version   TEXT COLLATE "C" NOT NULL,
    joined_at BIGINT NOT NULL,
    seen_at   BIGINT NOT NULL
);

CREATE TABLE leases (
    name         TEXT COLLATE "C" PRIMARY KEY,
    gateway      TEXT COLLATE "C",
    epoch        BIGINT NOT NULL,
    installation TEXT COLLATE "C" NOT NULL,
    host         TEXT COLLATE "C" NOT NULL
);

CREATE TABLE fence_breaches (
    lease TEXT COLLATE "C" NOT NULL,
    CONSTRAINT lease_was_lost CHECK (1 = 0)
);
