-- The mode and the model that somebody chose for an agent of somebody else's in a conversation.
CREATE TABLE agent_settings (
    conversation TEXT NOT NULL,
    agent        TEXT NOT NULL,
    kind         TEXT NOT NULL CHECK (kind IN ('mode', 'model')),
    value        TEXT NOT NULL,
    PRIMARY KEY (conversation, agent, kind)
) STRICT;
