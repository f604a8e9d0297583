-- The release of a lock that has one holder and no waiters, by one that still relies on it: what
-- happens most, so it comes before anything else, even the clock. It is there, so nobody has come
-- after it. See record.lua for the record, release.lua for the arguments.
if not ARGV[4] then
  local seen = redis.call('HMGET', KEYS[1], 'm', ARGV[3])
  if seen[1] == ARGV[1] and seen[2] then
    redis.call('HDEL', KEYS[1], ARGV[3], 'm')
    return 1
  end
end
