-- What was spent on a day, by whom: a person, a conversation, or all together. What a request is thought to
-- take is added before it is made and corrected afterwards, so a crash in between leaves the estimate.
CREATE TABLE spending (
    day         TEXT    NOT NULL,
    -- `person`, `conversation` or `all`.
    scope       TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    requests    INTEGER NOT NULL DEFAULT 0,
    tokens      INTEGER NOT NULL DEFAULT 0,
    nanodollars INTEGER NOT NULL DEFAULT 0,
    -- Tokens of models whose price nobody knows.
    unpriced    INTEGER NOT NULL DEFAULT 0,
    tool_ms     INTEGER NOT NULL DEFAULT 0,
    -- How often somebody lifted the day's budget.
    lifts       INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (day, scope, name)
) STRICT;
