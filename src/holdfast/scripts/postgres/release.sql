-- End a claim, whether it holds, waits or was never seen; whoever waits moves up.
--
-- Rule 1 (S6): an owner nobody knows leaves a tombstone: its claim may still be on the way. It is
--   written while the row is locked, so a claim is either before it, and then it is known, or behind.
-- Rule 2 (S31): with `linger` the seat stays taken, by nobody, for that long; a repeat changes nothing.
-- Rule 3: one that holds alone, with nobody behind it, is one update.

CREATE OR REPLACE FUNCTION holdfast.release(
  the_key text, the_owner text, linger bigint, bury bigint, OUT held boolean, OUT at bigint
) LANGUAGE plpgsql AS $$
DECLARE
  r holdfast.record;
  h holdfast.holder;
BEGIN
  at := holdfast.micros();
  IF linger = 0 THEN
    UPDATE holdfast.record SET owner = NULL
    WHERE key = the_key AND owner = the_owner AND NOT lingering AND waiting = 0 AND expires > at;
    IF FOUND THEN
      held := true;
      RETURN;
    END IF;
  END IF;

  held := false;
  IF NOT pg_try_advisory_xact_lock_shared(holdfast.lane(the_key))
    AND NOT holdfast.known(the_key, the_owner, at)
  THEN
    PERFORM holdfast.bury(the_owner, at, bury);  -- a claim that could be before it was refused
    RETURN;
  END IF;
  SELECT * INTO r FROM holdfast.record WHERE key = the_key FOR UPDATE;
  IF NOT FOUND THEN
    r := holdfast.open(the_key, true);
  END IF;
  at := holdfast.micros();
  IF r.owner IS NULL OR r.expires <= at OR r.expires > at + r.ttl THEN
    r := holdfast.settle(r, at);
  END IF;
  IF r.crowd > 0 THEN
    SELECT * INTO h FROM holdfast.holder o WHERE o.key = the_key AND o.owner = the_owner;
  END IF;

  IF r.owner = the_owner THEN
    held := NOT r.lingering;
    IF held AND linger > 0 THEN
      r.lingering := true;
      r.ttl := linger;
      r.expires := at + linger;
    ELSIF held THEN
      r.owner := NULL;
    END IF;
  ELSIF h.owner IS NOT NULL THEN
    held := NOT h.lingering;
    IF held AND linger > 0 THEN
      UPDATE holdfast.holder o SET lingering = true, ttl = linger, expires = at + linger
      WHERE o.key = the_key AND o.owner = the_owner;
      r.soonest := least(r.soonest, at + linger);
    ELSIF held THEN
      DELETE FROM holdfast.holder o WHERE o.key = the_key AND o.owner = the_owner;
      r.crowd := r.crowd - 1;
    END IF;
  ELSE
    DELETE FROM holdfast.waiter q WHERE q.owner = the_owner;
    IF FOUND THEN
      r.waiting := r.waiting - 1;
    ELSE
      PERFORM holdfast.bury(the_owner, at, bury);
    END IF;
  END IF;
  IF r.waiting > 0 THEN
    r := holdfast.move_up(r, at);
  END IF;
  PERFORM holdfast.write(r);
END
$$;

-- Remember an owner that must not enter any more, and forget those of long ago.
CREATE OR REPLACE FUNCTION holdfast.bury(the_owner text, at bigint, life bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF random() < 0.05 THEN
    DELETE FROM holdfast.tombstone WHERE owner IN (
      SELECT owner FROM holdfast.tombstone WHERE until <= at LIMIT 100 FOR UPDATE SKIP LOCKED
    );
  END IF;
  INSERT INTO holdfast.tombstone VALUES (the_owner, at + life)
  ON CONFLICT (owner) DO UPDATE SET until = excluded.until;
END
$$;
