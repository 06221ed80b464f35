-- Who answers in a conversation, where somebody chose another than the configuration says.
CREATE TABLE conversation_agents (
    conversation TEXT PRIMARY KEY,
    agent        TEXT NOT NULL
) STRICT;

-- What an agent of somebody else's calls its session, to find it again after a restart.
CREATE TABLE agent_sessions (
    conversation TEXT NOT NULL,
    agent        TEXT NOT NULL,
    session      TEXT NOT NULL,
    PRIMARY KEY (conversation, agent)
) STRICT;

-- 'agent' for what such an agent asks. Its subject is 'command', because what the column takes cannot be
-- changed without dropping the table, and with it where questions were shown.
ALTER TABLE approvals ADD COLUMN about TEXT;
