-- Whether a process that shares this store takes conversations on. One that stands by or is about to end does not.
ALTER TABLE gateways ADD COLUMN serves INTEGER NOT NULL DEFAULT 0;

-- Which gateway serves a conversation. The epoch only grows: a row changes its gateway and is never deleted.
CREATE TABLE conversation_holders (
    conversation TEXT PRIMARY KEY,
    gateway      TEXT    NOT NULL,
    epoch        INTEGER NOT NULL
) STRICT;

CREATE INDEX conversation_holders_of ON conversation_holders (gateway);

-- What one gateway has to tell another that is no message: an edit, a deletion, a pressed button.
CREATE TABLE gateway_signals (
    id      INTEGER PRIMARY KEY,
    gateway TEXT NOT NULL,
    payload TEXT NOT NULL
) STRICT;

CREATE INDEX gateway_signals_of ON gateway_signals (gateway, id);

-- Where the audit chains of gateways that share this store stand, each by its own sealed word. A store that is a
-- file has one gateway and no row here.
CREATE TABLE audit_heads (
    -- The name of the chain's key.
    chain        TEXT    NOT NULL,
    -- The machine and file that it is of: a key may have been copied.
    place        TEXT    NOT NULL,
    seq          INTEGER NOT NULL,
    hash         TEXT    NOT NULL,
    seal         TEXT    NOT NULL,
    published_at INTEGER NOT NULL,
    PRIMARY KEY (chain, place)
) STRICT;
