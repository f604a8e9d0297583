-- One record, in the hands of one statement: opened, settled, changed, written back.
--
-- Rule 1: a verb first settles the record: holders whose time is over go, waiters move up.
-- Rule 2 (S19): a name that is new begins above the highest token of all that were forgotten. That is
--   read after the row is ours: whoever forgot this name in between has finished then.
-- Rule 3: a clock that was set back keeps nobody for longer than its TTL.
-- Rule 4: a transaction that has the name, or is next (transaction.sql), holds its lane exclusively;
--   all others take a share of it while their statement runs, and never wait for that. Who gets none
--   goes on only if it is known to hold or wait: then no transaction has the row, nor can one get it.

-- This server's clock.
CREATE OR REPLACE FUNCTION holdfast.micros() RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT (date_part('epoch', clock_timestamp()) * 1000000)::bigint
$$;

-- What transactions lock instead of the name.
CREATE OR REPLACE FUNCTION holdfast.lane(the_key text) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT hashtextextended(the_key, 7233174049331163)
$$;

-- The channel of a client that listens.
CREATE OR REPLACE FUNCTION holdfast.channel(the_client bigint) RETURNS text LANGUAGE sql IMMUTABLE
AS $$
  SELECT 'holdfast:' || lpad(to_hex(the_client), 16, '0')
$$;

-- Lock the row of a name, and make it if there is none.
CREATE OR REPLACE FUNCTION holdfast.open(
  the_key text, may_fold boolean, OUT r holdfast.record
) LANGUAGE plpgsql AS $$
DECLARE
  made boolean := false;
BEGIN
  LOOP
    SELECT * INTO r FROM holdfast.record WHERE key = the_key FOR UPDATE;
    EXIT WHEN FOUND;
    INSERT INTO holdfast.record (key) VALUES (the_key) ON CONFLICT DO NOTHING;
    made := made OR FOUND;
  END LOOP;
  IF r.floor = 0 THEN
    SELECT floor INTO r.floor FROM holdfast.folded;
    IF made AND may_fold AND random() < 0.01 THEN
      PERFORM holdfast.fold(the_key, holdfast.micros());
    END IF;
  END IF;
END
$$;

-- Is somebody (anybody, if no owner is given) known to hold or wait? Then we may wait for the row:
-- it will not be for as long as somebody's transaction lasts.
CREATE OR REPLACE FUNCTION holdfast.known(the_key text, the_owner text, at bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  RETURN EXISTS (
    SELECT FROM holdfast.record a WHERE a.key = the_key
      AND a.owner = coalesce(the_owner, a.owner) AND a.expires > at
  ) OR EXISTS (
    SELECT FROM holdfast.holder h WHERE h.key = the_key
      AND h.owner = coalesce(the_owner, h.owner) AND h.expires > at
  ) OR EXISTS (
    SELECT FROM holdfast.waiter q WHERE q.key = the_key AND q.owner = coalesce(the_owner, q.owner)
  );
END
$$;

-- Write back what has changed.
CREATE OR REPLACE FUNCTION holdfast.write(r holdfast.record) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE holdfast.record SET
    floor = r.floor, family = r.family, bound = r.bound, owner = r.owner, mode = r.mode,
    path = r.path, ttl = r.ttl, since = r.since, expires = r.expires, revision = r.revision,
    lingering = r.lingering, client = r.client, rest = r.rest, crowd = r.crowd,
    soonest = r.soonest, looked = r.looked, waiting = r.waiting, head = r.head, tail = r.tail
  WHERE key = r.key;
END
$$;

-- The grant: a token, a full TTL from now, a seat.
CREATE OR REPLACE FUNCTION holdfast.seat(
  INOUT r holdfast.record, the_owner text, the_mode "char", the_path text, the_ttl bigint,
  the_client bigint, the_rest text, at bigint
) LANGUAGE plpgsql AS $$
BEGIN
  IF r.owner IS NOT NULL THEN  -- no longer alone
    INSERT INTO holdfast.holder VALUES (
      r.key, r.owner, r.floor, r.mode, r.path, r.ttl, r.since, r.expires, r.revision, r.lingering,
      r.client, r.rest
    );
    r.owner := NULL;
    r.crowd := 1;
    r.soonest := r.expires;
    r.looked := at;
  END IF;
  r.floor := greatest(r.floor + 1, at);
  IF r.crowd = 0 THEN
    r.owner := the_owner;
    r.mode := the_mode;
    r.path := the_path;
    r.ttl := the_ttl;
    r.since := at;
    r.expires := at + the_ttl;
    r.revision := 0;
    r.lingering := false;
    r.client := the_client;
    r.rest := the_rest;
  ELSE
    INSERT INTO holdfast.holder VALUES (
      r.key, the_owner, r.floor, the_mode, the_path, the_ttl, at, at + the_ttl, 0, false,
      the_client, the_rest
    );
    r.crowd := r.crowd + 1;
    r.soonest := least(r.soonest, at + the_ttl);
  END IF;
END
$$;

-- Would a claim have to wait for one of the holders?
CREATE OR REPLACE FUNCTION holdfast.excluded(r holdfast.record, the_mode "char", the_path text)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF r.bound > 0 AND r.crowd + (r.owner IS NOT NULL)::integer >= r.bound THEN
    RETURN true;
  ELSIF r.owner IS NOT NULL THEN
    RETURN (r.mode = 'X' OR the_mode = 'X')
      AND (starts_with(r.path, the_path) OR starts_with(the_path, r.path));
  ELSIF r.crowd = 0 THEN
    RETURN false;
  ELSIF r.family <> 'tree' THEN
    RETURN the_mode = 'X';  -- who is X there is alone
  END IF;
  RETURN EXISTS (
    SELECT FROM holdfast.holder h WHERE h.key = r.key AND (h.mode = 'X' OR the_mode = 'X')
      AND (starts_with(h.path, the_path) OR starts_with(the_path, h.path))
  );
END
$$;

-- Let those go whose time is over, and those in who may enter then.
CREATE OR REPLACE FUNCTION holdfast.settle(INOUT r holdfast.record, at bigint)
LANGUAGE plpgsql AS $$
DECLARE
  changed boolean := false;
BEGIN
  IF r.owner IS NOT NULL THEN
    IF r.expires <= at THEN
      r.owner := NULL;
      changed := true;
    ELSIF r.expires > at + r.ttl THEN
      r.expires := at + r.ttl;
      changed := true;
    END IF;
  ELSIF r.crowd > 0 AND (r.soonest <= at OR r.looked > at) THEN
    DELETE FROM holdfast.holder h WHERE h.key = r.key AND h.expires <= at;
    UPDATE holdfast.holder h SET expires = at + h.ttl
    WHERE h.key = r.key AND h.expires > at + h.ttl;
    SELECT count(*), min(h.expires) INTO r.crowd, r.soonest
    FROM holdfast.holder h WHERE h.key = r.key;
    r.looked := at;
    changed := true;
  END IF;
  IF r.waiting > 0 AND (changed OR (r.owner IS NULL AND r.crowd = 0)) THEN
    r := holdfast.move_up(r, at);
  END IF;
END
$$;
