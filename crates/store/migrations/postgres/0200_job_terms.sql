-- What the runs of a job are given: skills, a JSON list of their names, and the model that answers.
ALTER TABLE scheduled_jobs ADD COLUMN skills TEXT;
ALTER TABLE scheduled_jobs ADD COLUMN model TEXT;

-- The list of tasks as it was before the turn of this message wrote it.
ALTER TABLE todo_lists ADD COLUMN undo_message BIGINT;
ALTER TABLE todo_lists ADD COLUMN undo_items TEXT;
