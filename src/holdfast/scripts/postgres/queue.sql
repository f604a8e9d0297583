-- The queue of a record: first come, first served, and whoever leaves hands over.
--
-- Rule 1 (S3, S4): X conflicts with all, S with X, where one path is a prefix of the other. A claim
--   enters when it conflicts with no holder and no earlier waiter, and fewer than `bound` hold.
-- Rule 2: whoever leaves makes the next ones owners, in the same transaction, with tokens of their
--   own. They hear of it by NOTIFY. That takes a lock of the whole cluster when it commits, so it is
--   used only here and for locks that were broken: never where nobody waits.
-- Rule 3: a client keeps its number locked on the connection it listens on. If the lock is to be had,
--   that connection is gone, and its waiters are skipped. Two may look at the same time, so they ask
--   for a share of it. One that listens to nothing is gone when it has not asked for long.

-- How long one that listens to nothing may be silent: it asks four times a second.
CREATE OR REPLACE FUNCTION holdfast.patience(the_ttl bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
AS $$
  SELECT greatest(the_ttl, 5000000)
$$;

CREATE OR REPLACE FUNCTION holdfast.gone(w holdfast.waiter, at bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  IF w.client = 0 THEN
    RETURN w.until <= at;
  END IF;
  RETURN pg_try_advisory_xact_lock_shared(w.client);
END
$$;

CREATE OR REPLACE FUNCTION holdfast.tell(the_client bigint, message text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF the_client <> 0 THEN
    PERFORM pg_notify(holdfast.channel(the_client), message);
  END IF;
END
$$;

-- Let in, in order, whoever may enter now.
CREATE OR REPLACE FUNCTION holdfast.move_up(INOUT r holdfast.record, at bigint)
LANGUAGE plpgsql AS $$
DECLARE
  w holdfast.waiter;
  stay integer := 0;
  modes "char"[] := '{}';  -- of those who have to stay
  paths text[] := '{}';
BEGIN
  WHILE r.owner IS NULL AND r.crowd = 0 LOOP  -- whoever is first enters, or is gone
    DELETE FROM holdfast.waiter q WHERE q.key = r.key AND q.place = (
      SELECT f.place FROM holdfast.waiter f WHERE f.key = r.key AND f.place >= r.head
      ORDER BY f.place LIMIT 1
    ) RETURNING * INTO w;
    IF NOT FOUND THEN
      r.waiting := 0;
      r.head := r.tail;
      RETURN;
    END IF;
    r.head := w.place + 1;
    r := holdfast.admit(r, w, at);
  END LOOP;
  IF r.waiting = 0 OR (r.mode = 'X' AND r.path = '' AND r.owner IS NOT NULL) THEN
    RETURN;  -- which is what happens most
  END IF;

  FOR w IN
    SELECT * FROM holdfast.waiter q WHERE q.key = r.key AND q.place >= r.head ORDER BY q.place
  LOOP
    IF holdfast.excluded(r, w.mode, w.path) OR EXISTS (
      SELECT FROM unnest(modes, paths) AS ahead (mode, path)
      WHERE (ahead.mode = 'X' OR w.mode = 'X')
        AND (starts_with(ahead.path, w.path) OR starts_with(w.path, ahead.path))
    ) THEN
      IF r.family <> 'tree' OR (w.mode = 'X' AND w.path = '') THEN
        RETURN;  -- it is in the way of all behind it
      END IF;
      stay := stay + 1;
      modes := modes || w.mode;
      paths := paths || w.path;
    ELSE
      DELETE FROM holdfast.waiter q WHERE q.key = w.key AND q.place = w.place;
      r := holdfast.admit(r, w, at);
    END IF;
  END LOOP;
  r.waiting := stay;
END
$$;

-- Seat one that has left the queue, and tell it; one that is gone only leaves.
CREATE OR REPLACE FUNCTION holdfast.admit(INOUT r holdfast.record, w holdfast.waiter, at bigint)
LANGUAGE plpgsql AS $$
BEGIN
  r.waiting := greatest(0, r.waiting - 1);
  IF NOT holdfast.gone(w, at) THEN
    r := holdfast.seat(r, w.owner, w.mode, w.path, w.ttl, w.client, w.rest, at);
    PERFORM holdfast.tell(w.client, format('grant %s %s %s', w.owner, r.floor, at));
  END IF;
END
$$;
