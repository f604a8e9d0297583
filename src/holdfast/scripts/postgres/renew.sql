-- Give each holder its full TTL again; never creates, never revives.
--
-- Takes arrays of the same length, and gives the time and for each claim 1 = renewed, 0 = nobody
-- holds, 2 = somebody else does.
-- Rule 1 (S14): a renewal sent before an extend, and come after it, may add time but take none away.
--   If an owner is named twice, its highest revision counts.
-- Rule 2: it locks nothing but the rows of those who renew, so that two clients that renew many at
--   once never wait for each other in a circle. Who is over is removed by whoever comes next.
-- Rule 3: rows in the order in which everybody takes them: record before holder.

CREATE OR REPLACE FUNCTION holdfast.renew(
  keys text[], owners text[], revisions integer[], ttls bigint[], the_client bigint,
  OUT at bigint, OUT answers integer[]
) LANGUAGE plpgsql AS $$
DECLARE
  renewed text[];
  more text[];
BEGIN
  at := holdfast.micros();
  WITH done AS (
    UPDATE holdfast.record a SET
      expires = CASE WHEN u.revision < a.revision THEN greatest(a.expires, at + u.ttl)
        ELSE at + u.ttl END,
      ttl = CASE WHEN u.revision < a.revision THEN greatest(a.ttl, u.ttl) ELSE u.ttl END,
      revision = greatest(a.revision, u.revision),
      client = the_client
    FROM holdfast.newest(keys, owners, revisions, ttls) AS u
    WHERE a.key = u.key AND a.owner = u.owner AND NOT a.lingering AND a.expires > at
    RETURNING u.owner
  )
  SELECT array_agg(done.owner) INTO renewed FROM done;

  IF coalesce(cardinality(renewed), 0) < cardinality(keys) THEN
    -- An extend may end sooner than anybody else in the crowd.
    UPDATE holdfast.record a SET soonest = at + u.ttl
    FROM holdfast.newest(keys, owners, revisions, ttls) AS u
    WHERE a.key = u.key AND a.crowd > 0 AND a.soonest > at + u.ttl;
    WITH done AS (
      UPDATE holdfast.holder h SET
        expires = CASE WHEN u.revision < h.revision THEN greatest(h.expires, at + u.ttl)
          ELSE at + u.ttl END,
        ttl = CASE WHEN u.revision < h.revision THEN greatest(h.ttl, u.ttl) ELSE u.ttl END,
        revision = greatest(h.revision, u.revision),
        client = the_client
      FROM holdfast.newest(keys, owners, revisions, ttls) AS u
      WHERE h.key = u.key AND h.owner = u.owner AND NOT h.lingering AND h.expires > at
      RETURNING u.owner
    )
    SELECT array_agg(done.owner) INTO more FROM done;
    renewed := renewed || more;
  END IF;

  SELECT array_agg(
    CASE WHEN d.owner IS NOT NULL THEN 1
      WHEN (a.owner IS NOT NULL AND a.expires > at) OR (a.crowd > 0 AND EXISTS (
        SELECT FROM holdfast.holder h WHERE h.key = a.key AND h.expires > at
      )) THEN 2
      ELSE 0 END
    ORDER BY u.n
  ) INTO answers
  FROM unnest(keys, owners) WITH ORDINALITY AS u (key, owner, n)
    LEFT JOIN unnest(renewed) AS d (owner) ON d.owner = u.owner
    LEFT JOIN holdfast.record a ON a.key = u.key;
END
$$;

-- What each owner asks for.
CREATE OR REPLACE FUNCTION holdfast.newest(
  keys text[], owners text[], revisions integer[], ttls bigint[]
) RETURNS TABLE (key text, owner text, revision integer, ttl bigint) LANGUAGE sql STABLE AS $$
  SELECT DISTINCT ON (u.key, u.owner) * FROM unnest(keys, owners, revisions, ttls)
    AS u (key, owner, revision, ttl)
  ORDER BY u.key, u.owner, u.revision DESC
$$;
