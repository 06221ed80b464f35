-- The message of ours in which an answer grows: a start after a crash goes on in the same one.
ALTER TABLE inbox ADD COLUMN draft TEXT;
