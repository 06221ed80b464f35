-- A conversation that started afresh keeps what was said before as a session, which can be resumed.
CREATE TABLE sessions (
    id           INTEGER PRIMARY KEY,
    -- What people call it; known within its conversation alone.
    name         TEXT    NOT NULL,
    conversation TEXT    NOT NULL,
    title        TEXT    NOT NULL,
    begun_at     INTEGER NOT NULL,
    -- When something was last said in it.
    ended_at     INTEGER NOT NULL,
    UNIQUE (conversation, name)
) STRICT;

-- The session of a line; nothing for the one at hand.
ALTER TABLE history ADD COLUMN session INTEGER;

DROP INDEX history_of;
CREATE INDEX history_at_hand ON history (conversation, id) WHERE session IS NULL;
CREATE INDEX history_of_session ON history (session, id) WHERE session IS NOT NULL;

-- A summary stands for the lines up to one of them. The lines stay, so that taking the summary away brings
-- them back.
CREATE TABLE compactions (
    id           INTEGER PRIMARY KEY,
    conversation TEXT    NOT NULL,
    -- The last line that it stands for.
    up_to        INTEGER NOT NULL,
    summary      TEXT    NOT NULL,
    at           INTEGER NOT NULL,
    session      INTEGER
) STRICT;

CREATE INDEX compactions_of ON compactions (conversation, up_to);

-- The model that somebody chose for a conversation.
CREATE TABLE conversation_models (
    conversation TEXT PRIMARY KEY,
    model        TEXT NOT NULL
) STRICT;
