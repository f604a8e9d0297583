-- The tables. One row of `record` per lock name; what is more than one holder, or waits, stands in
-- tables of its own. All files of this folder are run in one transaction, by the first client or by
-- `holdfast doctor --fix`. `holdfast.` is replaced where the user wants another schema.
--
-- Rule 1: a record's only holder stands in its row (owner to rest). As soon as there are two, all
--   stand in `holder`: `crowd` of them, of whom no one's time is over before `soonest`.
-- Rule 2: whoever changes anything about a name has locked its row of `record` first. Renewals of
--   one's own rows are the exception: nobody else would touch them while they are in force.
-- Rule 3 (S3): who waits, waits behind a holder: where nobody holds, nobody waits.
-- Rule 4: times are microseconds of this server's clock, read inside the statement: now() is when
--   the transaction began, and stale once a row had to be waited for.
-- Rule 5 (S18): a token is greatest(floor + 1, clock), stored by the transaction that grants. Not a
--   sequence: one may give the same number again after a crash.
-- Rule 6: `waiter` and `tombstone` are UNLOGGED: after a crash they are empty. Whoever waited asks
--   again, and no request survives the connection that it was sent on.
--
-- `mode` is X or S. `path` ends with a slash, '' is none. `client` is both the number that a client
-- has locked on the connection it listens on, and its channel; 0 listens to nothing. `rest` is for
-- people. Whoever looks for waiters begins at `head`: before it, the index is full of rows that are
-- dead and not yet removed. A record's only holder has its floor as token: nobody was let in after it.

CREATE SCHEMA IF NOT EXISTS holdfast;

CREATE TABLE IF NOT EXISTS holdfast.record (
  key text COLLATE "C" PRIMARY KEY,
  floor bigint NOT NULL DEFAULT 0,  -- the highest token ever given under this name
  family text,  -- what it is used as, while anybody holds or waits
  bound integer,
  owner text COLLATE "C",
  mode "char",
  path text COLLATE "C",
  ttl bigint,
  since bigint,
  expires bigint,
  revision integer,
  lingering boolean,  -- released, but taken for a while (S31)
  client bigint,
  rest text,
  crowd integer NOT NULL DEFAULT 0,
  soonest bigint,
  looked bigint,  -- when the crowd was last looked at: a clock that says less was set back
  waiting integer NOT NULL DEFAULT 0,  -- at most so many: after a crash there are fewer
  head bigint NOT NULL DEFAULT 0,  -- nobody waits at a place before this
  tail bigint NOT NULL DEFAULT 0  -- the last place that was given
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 500);

CREATE TABLE IF NOT EXISTS holdfast.holder (
  key text COLLATE "C",
  owner text COLLATE "C",
  token bigint NOT NULL,
  mode "char" NOT NULL,
  path text COLLATE "C" NOT NULL,
  ttl bigint NOT NULL,
  since bigint NOT NULL,
  expires bigint NOT NULL,
  revision integer NOT NULL,
  lingering boolean NOT NULL,
  client bigint NOT NULL,
  rest text NOT NULL,
  PRIMARY KEY (key, owner)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 500);

CREATE UNLOGGED TABLE IF NOT EXISTS holdfast.waiter (
  key text COLLATE "C",
  place bigint,  -- first come, first served
  owner text COLLATE "C" NOT NULL UNIQUE,
  mode "char" NOT NULL,
  path text COLLATE "C" NOT NULL,
  ttl bigint NOT NULL,
  since bigint NOT NULL,
  until bigint NOT NULL,  -- of one that listens to nothing: gone, unless it asks again before
  client bigint NOT NULL,
  rest text NOT NULL,
  PRIMARY KEY (key, place)
) WITH (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 500);

-- Owners that let go before their claim came (S6).
CREATE UNLOGGED TABLE IF NOT EXISTS holdfast.tombstone (
  owner text COLLATE "C" PRIMARY KEY,
  until bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 500);
CREATE INDEX IF NOT EXISTS tombstone_until ON holdfast.tombstone (until);

-- One row: the highest token of all names that were forgotten, and how far `fold` has come.
CREATE TABLE IF NOT EXISTS holdfast.folded (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  floor bigint NOT NULL,
  swept text COLLATE "C" NOT NULL
) WITH (fillfactor = 50);
INSERT INTO holdfast.folded (floor, swept) VALUES (0, '') ON CONFLICT DO NOTHING;
