-- For whoever looks on: a conversation's messages, what happened lately, and what failed.
CREATE INDEX inbox_of ON inbox (conversation, id);
CREATE INDEX inbox_times ON inbox (received_at, state, ended_at);
CREATE INDEX inbox_failed ON inbox (ended_at) WHERE state = 'failed';
CREATE INDEX deliveries_of ON deliveries (message);
