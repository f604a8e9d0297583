-- The claim of a name that nobody holds or waits for: it is what happens most, so it comes before
-- anything else is even defined. See record.lua for the record, claim.lua for the arguments.
local seen = redis.call('HMGET', KEYS[1], 'f', 'm', 'b', 'k')
do
  if not seen[2] and now <= tonumber(ARGV[7]) and tonumber(seen[3] or 0) <= now then
    -- Numbers of this size are written slowly, the two halves of the time are at hand.
    local n = time[1] .. string.sub('00000' .. time[2], -6)
    local token, t = now, n
    local floor = tonumber(seen[1] or 0)
    if floor >= now then
      token = floor + 1
      t = string.format('%.0f', token)
    end
    local m = ARGV[1] .. ' 0 ' .. n .. ' ' .. ARGV[3]
    local holder = t .. ' ' .. n .. ' ' .. n .. ' 0 0 ' .. ARGV[2] .. ' ' .. ARGV[4]
    if tonumber(seen[4] or 0) > token then
      redis.call('HSET', KEYS[1], 'f', t, 'm', m, ARGV[5], holder)
    else
      local day = string.format('%.0f', token + 86400000000)
      redis.call('HSET', KEYS[1], 'f', t, 'm', m, ARGV[5], holder, 'k', day)
      redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', math.floor(token / 1000) + 172800000))
    end
    return { 'granted', now, token }
  end
end
