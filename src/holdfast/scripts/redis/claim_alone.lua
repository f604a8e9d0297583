-- The claim of a name that nobody holds or waits for: it is what happens most, so it comes before
-- anything else is even defined. See record.lua for the record, claim.lua for the arguments.
-- Gives the time alone, which is the token too: a table would cost as much as a call.
local seen = redis.call('HMGET', KEYS[1], 'f', 'm', 'b')
do
  local floor = tonumber(seen[1] or 0)
  if not seen[2] and floor < now and now <= tonumber(ARGV[5]) and tonumber(seen[3] or 0) <= now then
    redis.call('HSET', KEYS[1], 'f', stamp, 'm', ARGV[1], ARGV[3],
      stamp .. ' ' .. stamp .. ' ' .. stamp .. ' 0 0 ' .. ARGV[2])
    if floor < now - now % 86400000000 then
      redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', math.floor(now / 1000) + 172800000))
    end
    return now
  end
end
