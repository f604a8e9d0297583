-- Remove all holders, or the one with that token, and tell them; the queue stays and moves up.
--
-- A transaction that has the name (transaction.sql) is not touched: it ends by itself.

CREATE OR REPLACE FUNCTION holdfast.force(
  the_key text, the_token bigint, OUT broken integer, OUT at bigint
) LANGUAGE plpgsql AS $$
DECLARE
  r holdfast.record;
  h holdfast.holder;
  before holdfast.record;
BEGIN
  broken := 0;
  at := holdfast.micros();
  IF NOT pg_try_advisory_xact_lock_shared(holdfast.lane(the_key))
    AND NOT holdfast.known(the_key, NULL, at)
  THEN
    RETURN;
  END IF;
  SELECT * INTO r FROM holdfast.record WHERE key = the_key FOR UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  at := holdfast.micros();
  before := r;
  r := holdfast.settle(r, at);
  IF r.owner IS NOT NULL AND (the_token IS NULL OR the_token = r.floor) THEN
    PERFORM holdfast.tell(r.client, format('lost %s forced', r.owner));
    r.owner := NULL;
    broken := 1;
  ELSIF r.crowd > 0 THEN
    FOR h IN
      DELETE FROM holdfast.holder o WHERE o.key = the_key AND coalesce(the_token, o.token) = o.token
      RETURNING o.*
    LOOP
      PERFORM holdfast.tell(h.client, format('lost %s forced', h.owner));
      r.crowd := r.crowd - 1;
      broken := broken + 1;
    END LOOP;
  END IF;
  IF broken > 0 AND r.waiting > 0 THEN
    r := holdfast.move_up(r, at);
  END IF;
  IF r IS DISTINCT FROM before THEN
    PERFORM holdfast.write(r);
  END IF;
END
$$;
