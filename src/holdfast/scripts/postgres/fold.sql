-- Forgetting names, so that the table does not grow with every name that was ever used (S19).
--
-- Rule 1: the transaction that forgets a name raises the shared floor to its highest token; a name
--   that is new begins above that.
-- Rule 2: whoever makes new rows also removes old ones: one in a hundred looks at the next four
--   hundred rows, in the order of their names, and begins anew at the end.
-- Rule 3: it never forgets the name that is just being made.
-- Rule 4: it waits for nobody. What is locked is in use, or somebody else is folding.

CREATE OR REPLACE FUNCTION holdfast.fold(made text, at bigint) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  first text;
  last text;
  highest bigint;
  folded integer;
  before bigint := at - 600000000;  -- idle for ten minutes
  r holdfast.record;
BEGIN
  SELECT swept INTO first FROM holdfast.folded FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    RETURN 0;
  END IF;
  SELECT max(few.key) INTO last FROM (
    SELECT key FROM holdfast.record WHERE key > first ORDER BY key LIMIT 400
  ) AS few;
  -- Crowds whose last member never came back, and queues that a crash has emptied.
  FOR r IN
    SELECT * FROM holdfast.record WHERE key > first AND key <= last
      AND key <> made
      AND (crowd > 0 OR waiting > 0) AND coalesce(soonest, expires, 0) < before
    FOR UPDATE SKIP LOCKED
  LOOP
    PERFORM holdfast.write(holdfast.settle(r, at));
  END LOOP;
  WITH idle AS (
    SELECT key FROM holdfast.record WHERE key > first AND key <= last
      AND key <> made AND floor < before AND crowd = 0 AND waiting = 0 AND (owner IS NULL OR expires < before)
    FOR UPDATE SKIP LOCKED
  ), gone AS (
    DELETE FROM holdfast.record USING idle WHERE record.key = idle.key RETURNING record.floor
  )
  SELECT count(*), max(floor) INTO folded, highest FROM gone;
  UPDATE holdfast.folded SET
    floor = greatest(floor, highest),
    swept = coalesce(last, '');
  RETURN folded;
END
$$;
