-- What is remembered for a person, or for a group, beyond one conversation.
CREATE TABLE memories (
    -- `owner`, `person:<platform>:<id>` or `group:<conversation>`.
    owner      TEXT    NOT NULL,
    -- `memory` or `user`.
    target     TEXT    NOT NULL,
    -- As Hermes writes its file.
    entries    TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    -- Counts what people changed: a conversation that is under way takes it over at once.
    reviewed   INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (owner, target)
) STRICT;

-- Changes that wait for a person, where they have to.
CREATE TABLE memory_requests (
    id         TEXT    PRIMARY KEY,
    owner      TEXT    NOT NULL,
    target     TEXT    NOT NULL,
    operations TEXT    NOT NULL,
    asked_at   INTEGER NOT NULL
) STRICT;

CREATE INDEX memory_requests_of ON memory_requests (owner);

-- Skills that an agent wrote and nobody has approved.
CREATE TABLE skill_drafts (
    owner      TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    -- Names exactly this text, so that nobody approves another one than was read.
    digest     TEXT    NOT NULL UNIQUE,
    body       TEXT    NOT NULL,
    written_at INTEGER NOT NULL,
    PRIMARY KEY (owner, name)
) STRICT;

-- Whose a private conversation is. A conversation that is not here is nobody's but its own.
CREATE TABLE conversation_people (
    id           INTEGER PRIMARY KEY,
    conversation TEXT    NOT NULL UNIQUE,
    person       TEXT    NOT NULL
) STRICT;

CREATE INDEX conversations_of_person ON conversation_people (person);
