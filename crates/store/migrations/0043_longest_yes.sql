-- How long a yes to this question can hold at most. Questions from before this column were shown with
-- "for this session" among the answers, and what was shown holds.
ALTER TABLE approvals ADD COLUMN longest TEXT NOT NULL DEFAULT 'always'
    CHECK (longest IN ('once', 'ten_minutes', 'session', 'always'));
