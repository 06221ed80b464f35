-- A question to a person, written before it is shown to anybody.
CREATE TABLE approvals (
    id           TEXT PRIMARY KEY,
    subject      TEXT    NOT NULL CHECK (subject IN ('command', 'host')),
    conversation TEXT    NOT NULL,
    message      INTEGER REFERENCES inbox (id) ON DELETE SET NULL,
    -- Redacted; what it stands for is the fingerprint.
    what         TEXT    NOT NULL,
    fingerprint  TEXT    NOT NULL,
    reasons      TEXT    NOT NULL,
    asker        TEXT    NOT NULL,
    asked_at     INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    state        TEXT    NOT NULL
                 CHECK (state IN ('pending', 'approved', 'denied', 'expired', 'withdrawn')),
    scope        TEXT,
    answered_by  TEXT,
    via          TEXT,
    reason       TEXT,
    answered_at  INTEGER,
    -- A yes is spent before what it allows is run: killed in between, it does not run twice.
    spent_at     INTEGER,
    -- Whether the answer is in the audit record.
    recorded     INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX approvals_pending ON approvals (asked_at) WHERE state = 'pending';
CREATE INDEX approvals_of ON approvals (conversation, fingerprint);
CREATE INDEX approvals_unrecorded ON approvals (id) WHERE recorded = 0 AND state <> 'pending';

-- What a person allowed for longer than once.
CREATE TABLE grants (
    conversation TEXT    NOT NULL,
    subject      TEXT    NOT NULL,
    fingerprint  TEXT    NOT NULL,
    request      TEXT    NOT NULL,
    granted_at   INTEGER NOT NULL,
    -- Absent: until the conversation is reset.
    expires_at   INTEGER,
    PRIMARY KEY (conversation, subject, fingerprint)
) STRICT;

-- Where a question was shown, to show there what came of it.
CREATE TABLE approval_notices (
    request  TEXT NOT NULL REFERENCES approvals (id) ON DELETE CASCADE,
    platform TEXT NOT NULL,
    place    TEXT NOT NULL,
    message  TEXT NOT NULL
) STRICT;

CREATE INDEX approval_notices_of ON approval_notices (request);

-- What a button means. Only the token travels.
CREATE TABLE approval_buttons (
    token   TEXT PRIMARY KEY,
    request TEXT NOT NULL REFERENCES approvals (id) ON DELETE CASCADE,
    choice  TEXT NOT NULL
) STRICT;

CREATE INDEX approval_buttons_of ON approval_buttons (request);
