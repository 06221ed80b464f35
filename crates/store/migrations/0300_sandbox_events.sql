-- What became of sandboxes, for people. A sandbox's row goes with it; these stay for as long as messages do.
CREATE TABLE sandbox_events (
    id           INTEGER PRIMARY KEY,
    sandbox      TEXT    NOT NULL,
    -- The one that had it at that moment.
    conversation TEXT    NOT NULL,
    backend      TEXT    NOT NULL,
    -- named, ready, stopped, resumed, given, set_aside, taken_back, failed or gone
    what         TEXT    NOT NULL,
    note         TEXT,
    at           INTEGER NOT NULL
) STRICT;

CREATE INDEX sandbox_events_of ON sandbox_events (conversation, at);
CREATE INDEX sandbox_events_at ON sandbox_events (at);

-- Few replies are given up, and they are asked for with every look.
CREATE INDEX deliveries_failed ON deliveries (id) WHERE state = 'failed';
