-- A sandbox is named here before it exists and forgotten after it is seen to be gone.
CREATE TABLE sandboxes (
    id           TEXT PRIMARY KEY,
    conversation TEXT    NOT NULL,
    backend      TEXT    NOT NULL,
    state        TEXT    NOT NULL
                 CHECK (state IN ('creating', 'running', 'stopping', 'stopped', 'destroying')),
    spec         TEXT    NOT NULL,
    named_at     INTEGER NOT NULL,
    touched_at   INTEGER NOT NULL,
    failures     INTEGER NOT NULL DEFAULT 0,
    last_failure TEXT
) STRICT;

-- One conversation, one sandbox; the one before may still be on its way out.
CREATE UNIQUE INDEX one_sandbox_each ON sandboxes (conversation) WHERE state <> 'destroying';
