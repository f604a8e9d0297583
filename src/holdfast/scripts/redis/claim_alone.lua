-- The claim of a name that nobody holds or waits for: it is what happens most, so it comes before
-- anything else is even defined. See record.lua for the record, claim.lua for the arguments.
do
  local found = redis.call('HMGET', KEYS[1], 'm', 'f', 'k', 'b')
  if not found[1] and now <= tonumber(ARGV[9]) and tonumber(found[4] or 0) <= now then
    -- Numbers of this size are written slowly, the two halves of the time are at hand.
    local n = time[1] .. string.sub('00000' .. time[2], -6)
    local token, t = now, n
    local floor = tonumber(found[2] or 0)
    if floor >= now then
      token = floor + 1
      t = string.format('%.0f', token)
    end
    local m = ARGV[1] .. ' ' .. n .. ' ' .. ARGV[5]
    local holder = t .. ' ' .. n .. ' ' .. n .. ' 0 0 ' .. ARGV[4] .. ' ' .. ARGV[6]
    if tonumber(found[3] or 0) > token then
      redis.call('HSET', KEYS[1], 'f', t, 'm', m, ARGV[7], holder)
    else
      local day = string.format('%.0f', token + 86400000000)
      redis.call('HSET', KEYS[1], 'f', t, 'm', m, ARGV[7], holder, 'k', day)
      redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', math.floor(token / 1000) + 172800000))
    end
    return { 'granted', now, token }
  end
end
