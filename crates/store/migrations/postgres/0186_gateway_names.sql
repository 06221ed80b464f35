-- As the step of the same number for SQLite.
ALTER TABLE gateways ADD COLUMN name TEXT COLLATE "C" NOT NULL DEFAULT '';

-- An index of PostgreSQL holds no text of some thousand characters, and what a model calls its call may be one.
ALTER TABLE tool_calls DROP CONSTRAINT tool_calls_pkey;
CREATE UNIQUE INDEX tool_calls_once ON tool_calls (message, md5(call));
