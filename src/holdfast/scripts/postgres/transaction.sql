-- The lock for the length of the caller's own transaction: it ends when that commits or rolls back.
--
-- Gives the token, or nothing while somebody else has the name: ask again then.
-- Rule 1: it has no TTL and no place in the queue. It takes the lane of the name first, and keeps it:
--   from then on nobody new is let in or queued, so those who were there before it come first, and
--   nobody else does.
-- Rule 2: it does not touch the row before the name is free: who holds must be able to let go.
-- Rule 3: then it keeps the row with the new floor in it. A token of a transaction that is rolled back
--   was written nowhere; the clock keeps the next one above it.

CREATE OR REPLACE FUNCTION holdfast.take_in_transaction(the_key text, OUT token bigint)
LANGUAGE plpgsql AS $$
DECLARE
  r holdfast.record;
  at bigint := holdfast.micros();
BEGIN
  IF NOT pg_try_advisory_xact_lock(holdfast.lane(the_key)) THEN
    RETURN;
  END IF;
  IF EXISTS (
    SELECT FROM holdfast.record a WHERE a.key = the_key AND (
      (a.owner IS NOT NULL AND a.expires > at)
      OR (a.waiting > 0 AND EXISTS (SELECT FROM holdfast.waiter q WHERE q.key = the_key))
      OR (a.crowd > 0 AND EXISTS (
        SELECT FROM holdfast.holder h WHERE h.key = the_key AND h.expires > at
      ))
    )
  ) THEN
    RETURN;
  END IF;
  r := holdfast.settle(holdfast.open(the_key, false), at);
  r.floor := greatest(r.floor + 1, holdfast.micros());
  token := r.floor;
  PERFORM holdfast.write(r);
END
$$;
