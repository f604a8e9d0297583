-- Show one record, or all whose key begins with a prefix: a row for each who holds or waits.
--
-- `role` is H for a holder, W for a waiter (in order, behind the holders of its key), T for a
-- transaction that has the name or is next, of which nothing else is known.
-- Rule 1: records in which somebody's time is over while others wait are settled first. What is
--   locked is being changed by somebody else, and shown as it was.

CREATE OR REPLACE FUNCTION holdfast.look(prefix text, exactly boolean) RETURNS TABLE (
  at bigint, role text, key text, family text, bound integer, owner text, token bigint,
  mode "char", path text, since bigint, expires bigint, rest text
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  r holdfast.record;
  beyond text := CASE WHEN exactly THEN prefix ELSE prefix || '~' END;  -- behind all that keys use
  now bigint := holdfast.micros();
BEGIN
  FOR r IN
    SELECT * FROM holdfast.record a WHERE a.key >= prefix AND a.key <= beyond
      AND (a.waiting > 0 OR a.crowd > 0) AND (
        (a.owner IS NOT NULL AND (a.expires <= now OR a.expires > now + a.ttl))
        OR (a.crowd > 0 AND (a.soonest <= now OR a.looked > now))
        OR (a.owner IS NULL AND a.crowd = 0)
      )
    FOR UPDATE SKIP LOCKED
  LOOP
    PERFORM holdfast.write(holdfast.settle(r, now));
  END LOOP;
  RETURN QUERY
    SELECT now, 'H', a.key, a.family, a.bound, a.owner, a.floor, a.mode, a.path, a.since,
      least(a.expires, now + a.ttl), a.rest
    FROM holdfast.record a
    WHERE a.key >= prefix AND a.key <= beyond AND a.owner IS NOT NULL AND a.expires > now
    UNION ALL
    SELECT now, 'H', a.key, a.family, a.bound, h.owner, h.token, h.mode, h.path, h.since,
      h.expires, h.rest
    FROM holdfast.record a JOIN holdfast.holder h ON h.key = a.key
    WHERE a.key >= prefix AND a.key <= beyond AND a.crowd > 0 AND h.expires > now
    ORDER BY 3, 7;
  RETURN QUERY
    SELECT now, 'W', a.key, a.family, a.bound, q.owner, NULL::bigint, q.mode, q.path, q.since,
      CASE WHEN q.client = 0 THEN q.until END, q.rest
    FROM holdfast.record a JOIN holdfast.waiter q ON q.key = a.key
    WHERE a.key >= prefix AND a.key <= beyond AND a.waiting > 0
    ORDER BY q.key, q.place;
  IF exactly AND NOT pg_try_advisory_xact_lock_shared(holdfast.lane(prefix)) THEN
    RETURN QUERY SELECT now, 'T', prefix, 'lock', 0, '', NULL::bigint, 'X'::"char", '', now,
      NULL::bigint, '["","a transaction",""]';
  END IF;
END
$$;
