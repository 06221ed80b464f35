-- What people call a process that shares this store. A program of the step before writes none.
ALTER TABLE gateways ADD COLUMN name TEXT NOT NULL DEFAULT '';
