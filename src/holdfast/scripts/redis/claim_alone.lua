-- The claim of a name that nobody holds or waits for: it is what happens most, so it comes before
-- anything else is even defined. See record.lua for the record, claim.lua for the arguments.
do
  local found = redis.call('HMGET', KEYS[1], 'm', 'f', 'k', 'b')
  if not found[1] and now <= tonumber(ARGV[9]) and tonumber(found[4] or 0) <= now then
    local token = math.max(tonumber(found[2] or 0) + 1, now)
    local n = string.format('%.0f', now)
    local t = token == now and n or string.format('%.0f', token)
    local expires = string.format('%.0f', now + ARGV[4])
    local m = ARGV[1] .. ' ' .. expires .. ' ' .. ARGV[5]
    local holder = t .. ' ' .. expires .. ' ' .. n .. ' 0 0 ' .. ARGV[4] .. ' ' .. ARGV[6]
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
