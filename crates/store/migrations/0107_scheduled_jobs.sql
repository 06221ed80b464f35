-- Work that is due at a time, in the name of a person.
CREATE TABLE scheduled_jobs (
    id        TEXT    PRIMARY KEY,
    owner     TEXT    NOT NULL,
    -- `platform:user`, whose rights and budgets count.
    person    TEXT    NOT NULL,
    name      TEXT    NOT NULL,
    prompt    TEXT    NOT NULL,
    schedule  TEXT    NOT NULL,
    -- The message it was made by, without its words: where it was made, and by whom.
    origin    TEXT    NOT NULL,
    deliver   TEXT    NOT NULL,
    -- Runs that are left; forever where nothing is written.
    runs_left INTEGER,
    state     TEXT    NOT NULL CHECK (state IN ('scheduled', 'paused', 'ended')),
    -- Why it is paused or ended.
    why       TEXT,
    next_at   INTEGER,
    -- Somebody asked for a run now.
    requested INTEGER,
    -- Runs in a row that failed.
    failures  INTEGER NOT NULL DEFAULT 0,
    made_at   INTEGER NOT NULL
) STRICT;

CREATE INDEX scheduled_jobs_due ON scheduled_jobs (next_at) WHERE state = 'scheduled';
CREATE INDEX scheduled_jobs_of ON scheduled_jobs (person);

-- One moment of a job: written before it runs, so that none is run twice.
CREATE TABLE scheduled_runs (
    job        TEXT    NOT NULL REFERENCES scheduled_jobs (id) ON DELETE CASCADE,
    -- When it was due.
    tick       INTEGER NOT NULL,
    how        TEXT    NOT NULL CHECK (how IN ('schedule', 'asked')),
    -- The message in the inbox that it became.
    message    INTEGER,
    state      TEXT    NOT NULL
               CHECK (state IN ('running', 'answered', 'silent', 'failed', 'refused', 'missed', 'lost')),
    note       TEXT,
    answer     TEXT,
    claimed_at INTEGER NOT NULL,
    ended_at   INTEGER,
    PRIMARY KEY (job, tick, how)
) STRICT;

CREATE INDEX scheduled_runs_open ON scheduled_runs (job) WHERE ended_at IS NULL;
