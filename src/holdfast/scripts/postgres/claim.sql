-- Enter, or take a place in the queue, or say who is in the way. Never waits for its turn.
--
-- Gives `answer`: granted (number = token), busy (number = position, then who is in the way: token,
-- until when, text), mismatch (number = bound, held_by = family), late or barred; and the time.
-- Rule 1 (S6): a copy that comes when nobody wants it any more, or after its own release, is refused.
-- Rule 2: an owner that is inside gets the same token and a full TTL, never less than it has.
-- Rule 3: an owner in the queue keeps its place.
-- Rule 4: a name that nobody holds or waits for is one update; one that somebody else has alone is
--   only looked at, so that a try which fails writes nothing to the log.
-- Rule 5: who lets go of what is not there leaves a tombstone while it holds the row (release.sql):
--   we look for one when the row is ours, in a statement of its own, which sees it.

CREATE OR REPLACE FUNCTION holdfast.claim(
  the_key text, the_owner text, the_family text, the_bound integer, the_mode "char",
  the_path text, the_ttl bigint, the_client bigint, the_rest text, queue boolean, wanted bigint,
  OUT answer text, OUT at bigint, OUT number bigint,
  OUT held_token bigint, OUT held_until bigint, OUT held_by text
) LANGUAGE plpgsql AS $$
DECLARE
  r holdfast.record;
  h holdfast.holder;
  w holdfast.waiter;
  before holdfast.record;
  made boolean;
BEGIN
  at := holdfast.micros();
  IF at > wanted THEN
    answer := 'late';
    RETURN;
  END IF;

  UPDATE holdfast.record SET
    floor = greatest(floor + 1, at), family = the_family, bound = the_bound, owner = the_owner,
    mode = the_mode, path = the_path, ttl = the_ttl, since = at, expires = at + the_ttl,
    revision = 0, lingering = false, client = the_client, rest = the_rest
  WHERE key = the_key AND crowd = 0 AND waiting = 0 AND (owner IS NULL OR expires <= at)
    AND floor > 0 AND pg_try_advisory_xact_lock_shared(holdfast.lane(the_key))
  RETURNING floor INTO number;
  IF FOUND THEN
    answer := 'granted';
    IF EXISTS (SELECT FROM holdfast.tombstone t WHERE t.owner = the_owner AND t.until > at) THEN
      UPDATE holdfast.record SET owner = NULL WHERE key = the_key;
      answer := 'barred';
    END IF;
    RETURN;
  END IF;

  SELECT * INTO r FROM holdfast.record WHERE key = the_key;
  IF r.waiting > 0 THEN
    SELECT * INTO w FROM holdfast.waiter q WHERE q.owner = the_owner;
  END IF;
  IF r.owner <> the_owner AND r.mode = 'X' AND r.path = '' AND r.expires > at
    AND r.expires <= at + r.ttl AND r.family = the_family AND r.bound = the_bound
    AND (NOT queue OR (w.client = the_client
      AND (w.client <> 0 OR w.until > at + holdfast.patience(the_ttl) / 2)))
  THEN
    SELECT * FROM holdfast.busy(r, w.place) INTO answer, number, held_token, held_until, held_by;
    RETURN;
  END IF;

  IF NOT pg_try_advisory_xact_lock_shared(holdfast.lane(the_key))
    AND NOT holdfast.known(the_key, the_owner, at)
  THEN
    answer := 'busy';
    number := 0;
    RETURN;
  END IF;
  SELECT * INTO r FROM holdfast.record WHERE key = the_key FOR UPDATE;
  IF NOT FOUND OR r.floor = 0 THEN
    r := holdfast.open(the_key, true);
  END IF;
  at := holdfast.micros();  -- we may have waited for the row
  IF at > wanted THEN
    answer := 'late';
    RETURN;
  END IF;
  IF EXISTS (SELECT FROM holdfast.tombstone t WHERE t.owner = the_owner AND t.until > at) THEN
    answer := 'barred';
    RETURN;
  END IF;
  before := r;
  IF r.owner IS NULL OR r.expires <= at OR r.expires > at + r.ttl THEN
    r := holdfast.settle(r, at);
  END IF;

  IF r.owner = the_owner THEN
    answer := CASE WHEN r.lingering THEN 'barred' ELSE 'granted' END;
    number := r.floor;
    IF NOT r.lingering THEN
      r.expires := greatest(r.expires, at + the_ttl);
      r.ttl := greatest(r.ttl, the_ttl);
      r.client := the_client;
    END IF;
    PERFORM holdfast.write(r);
    RETURN;
  ELSIF r.crowd > 0 THEN
    SELECT * INTO h FROM holdfast.holder o WHERE o.key = the_key AND o.owner = the_owner;
    IF FOUND THEN
      answer := CASE WHEN h.lingering THEN 'barred' ELSE 'granted' END;
      number := h.token;
      UPDATE holdfast.holder o SET
        expires = greatest(o.expires, at + the_ttl), ttl = greatest(o.ttl, the_ttl),
        client = the_client
      WHERE o.key = the_key AND o.owner = the_owner AND NOT o.lingering;
      IF r IS DISTINCT FROM before THEN
        PERFORM holdfast.write(r);
      END IF;
      RETURN;
    END IF;
  END IF;

  IF r.owner IS NULL AND r.crowd = 0 THEN
    r.family := the_family;
    r.bound := the_bound;
  ELSIF r.family <> the_family OR r.bound <> the_bound THEN
    IF r IS DISTINCT FROM before THEN
      PERFORM holdfast.write(r);
    END IF;
    answer := 'mismatch';
    number := r.bound;
    held_by := r.family;
    RETURN;
  END IF;

  IF NOT holdfast.excluded(r, the_mode, the_path) AND (r.waiting = 0 OR NOT EXISTS (
    SELECT FROM holdfast.waiter q WHERE q.key = the_key AND q.place >= r.head AND (
      q.owner = the_owner OR r.family <> 'tree' OR ((q.mode = 'X' OR the_mode = 'X')
        AND (starts_with(q.path, the_path) OR starts_with(the_path, q.path)))
    )
  )) THEN
    r := holdfast.seat(r, the_owner, the_mode, the_path, the_ttl, the_client, the_rest, at);
    PERFORM holdfast.write(r);
    answer := 'granted';
    number := r.floor;
    RETURN;
  END IF;

  IF queue THEN
    INSERT INTO holdfast.waiter AS q VALUES (
      the_key, greatest(at, r.tail + 1), the_owner, the_mode, the_path, the_ttl, at,
      at + holdfast.patience(the_ttl), the_client, the_rest
    )
    ON CONFLICT (owner) DO UPDATE SET client = excluded.client, until = excluded.until
    RETURNING q.place, q.xmax = 0 INTO w.place, made;
    IF made THEN
      r.waiting := r.waiting + 1;
      r.tail := w.place;
    END IF;
  END IF;
  IF r IS DISTINCT FROM before THEN
    PERFORM holdfast.write(r);
  END IF;
  SELECT * FROM holdfast.busy(r, w.place) INTO answer, number, held_token, held_until, held_by;
END
$$;

-- Say how many are before a place, and which holder's time is over first.
CREATE OR REPLACE FUNCTION holdfast.busy(
  r holdfast.record, the_place bigint,
  OUT answer text, OUT number bigint, OUT held_token bigint, OUT held_until bigint,
  OUT held_by text
) LANGUAGE plpgsql AS $$
BEGIN
  answer := 'busy';
  number := 0;
  IF r.waiting > 0 THEN
    SELECT count(*) INTO number FROM holdfast.waiter q
    WHERE q.key = r.key AND q.place >= r.head AND q.place < coalesce(the_place, r.tail + 1);
  END IF;
  IF r.owner IS NOT NULL THEN
    held_token := r.floor;
    held_until := r.expires;
    held_by := r.rest;
  ELSE
    SELECT h.token, h.expires, h.rest INTO held_token, held_until, held_by
    FROM holdfast.holder h WHERE h.key = r.key ORDER BY h.expires LIMIT 1;
  END IF;
END
$$;
