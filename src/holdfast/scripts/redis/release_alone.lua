-- The release of a lock that has one holder and no waiters: what happens most, so it comes before
-- anything else is even defined. See record.lua for the record, release.lua for the arguments.
do
  local seen = redis.call('HMGET', KEYS[1], 'm', ARGV[5])
  if seen[1] and seen[2] and ARGV[4] == '0' then
    local counts = string.sub(seen[1], -8)
    if counts == ' 1 1 0 0' or counts == ' 1 0 0 0' or counts == ' 0 0 1 0' then
      local from, lingering, ttl = string.match(seen[2], '^%d+ (%d+) %d+ %d+ (%d) (%d+)')
      if lingering == '0' then
        redis.call('HDEL', KEYS[1], ARGV[5], 'm')
        return { from + ttl > now and 1 or 0, now }
      end
    end
  end
end
