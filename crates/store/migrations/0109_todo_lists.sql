-- The tasks that an agent wrote down for what is at hand in a conversation.
CREATE TABLE todo_lists (
    conversation TEXT PRIMARY KEY,
    items        TEXT NOT NULL
) STRICT;
