-- A sandbox whose kept files the configuration of today does not use. They stay until somebody asks for
-- their end; the conversation has another sandbox meanwhile.
ALTER TABLE sandboxes ADD COLUMN set_aside_at INTEGER;

-- One conversation, one sandbox in use.
DROP INDEX one_sandbox_each;
CREATE UNIQUE INDEX one_sandbox_each ON sandboxes (conversation)
    WHERE state <> 'destroying' AND set_aside_at IS NULL;
