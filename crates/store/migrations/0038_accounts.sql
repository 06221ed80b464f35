-- One bot is one account, and two bots of one platform number their updates apart. What was written so
-- far belongs to the platform's own account, whose name is that of the platform: no row changes.
ALTER TABLE inbox RENAME COLUMN platform TO account;
ALTER TABLE deliveries RENAME COLUMN platform TO account;
ALTER TABLE approval_notices RENAME COLUMN platform TO account;

-- What the adapter of an account remembers: resume tokens, sync positions, keys.
CREATE TABLE adapter_state (
    account TEXT NOT NULL,
    key     TEXT NOT NULL,
    value   TEXT NOT NULL,
    PRIMARY KEY (account, key)
) STRICT;
