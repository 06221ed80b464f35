-- Whose work a row is: a gateway that shares a store with others takes up its own only. What was written
-- so far is the one gateway's that there was.
ALTER TABLE sandboxes  ADD COLUMN owner TEXT NOT NULL DEFAULT 'gateway';
ALTER TABLE inbox      ADD COLUMN owner TEXT NOT NULL DEFAULT 'gateway';
ALTER TABLE deliveries ADD COLUMN owner TEXT NOT NULL DEFAULT 'gateway';
ALTER TABLE processes  ADD COLUMN owner TEXT NOT NULL DEFAULT 'gateway';
ALTER TABLE approvals  ADD COLUMN owner TEXT NOT NULL DEFAULT 'gateway';
