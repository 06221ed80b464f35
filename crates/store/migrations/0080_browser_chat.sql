-- The chat in the browser: we are the platform, so what was said there is kept here. The number of a conversation
-- is never given again: a sandbox hangs on it.
CREATE TABLE browser_conversations (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    person    TEXT NOT NULL,
    title     TEXT NOT NULL DEFAULT '',
    opened_at INTEGER NOT NULL,
    said_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX browser_conversations_of ON browser_conversations (person, said_at);

-- `state` is `waiting`, `taken` or `turned_away` for what a person said, `shown` for what we said.
CREATE TABLE browser_messages (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation INTEGER NOT NULL,
    state        TEXT NOT NULL,
    text         TEXT NOT NULL,
    buttons      TEXT NOT NULL DEFAULT '',
    notice       TEXT,
    -- Of a person's form, or of a delivery: the same one twice is one message.
    send_key     TEXT,
    said_at      INTEGER NOT NULL,
    owner        TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX browser_messages_once ON browser_messages (conversation, send_key);
CREATE INDEX browser_messages_waiting ON browser_messages (id) WHERE state = 'waiting';

CREATE TABLE browser_files (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    message INTEGER NOT NULL,
    -- Its number within the message.
    part    INTEGER NOT NULL,
    name    TEXT NOT NULL,
    mime    TEXT,
    size    INTEGER NOT NULL,
    bytes   BLOB NOT NULL,
    UNIQUE (message, part)
) STRICT;
