-- As the step of the same number for SQLite. A program of the step before does not know the table.
CREATE TABLE agent_settings (
    conversation TEXT COLLATE "C" NOT NULL,
    agent        TEXT COLLATE "C" NOT NULL,
    kind         TEXT COLLATE "C" NOT NULL CHECK (kind IN ('mode', 'model')),
    value        TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (conversation, agent, kind)
);
