-- A vote for a name that nobody holds or waits for on this node: what happens most, so it comes
-- before anything else is even defined. See record.lua for the record, vote.lua for the arguments.
local seen = redis.call('HMGET', KEYS[1], 'f', 'm', 'b', 'k')
local roster = redis.call('HMGET', KEYS[3], 'max_ttl', 'nodes', 'until', 'self')
do
  local proposal, floor = tonumber(ARGV[11]), tonumber(seen[1] or 0)
  if not seen[2] and tonumber(seen[3] or 0) <= now and now <= tonumber(ARGV[14]) and
      roster[1] == ARGV[7] and roster[2] == ARGV[8] and roster[4] == ARGV[13] and
      tonumber(roster[3]) <= now and
      proposal > floor and proposal <= math.max(now, floor) + 60000000 then
    local n = time[1] .. string.sub('00000' .. time[2], -6)
    local m = ARGV[1] .. ' 0 ' .. n .. ' ' .. ARGV[5]
    local text = ARGV[6]
    if string.sub(ARGV[1], 1, 1) == 's' then  -- of a semaphore, the slot
      local channel, rest = string.match(text, '^%u (%S+) %S+ (.*)$')
      text = ARGV[2] .. ' ' .. channel .. ' ' .. ARGV[3] .. ' ' .. rest
    end
    local holder = ARGV[11] .. ' ' .. n .. ' ' .. n .. ' 0 0 ' .. ARGV[4] .. ' ' .. text
    if tonumber(seen[4] or 0) > proposal then
      redis.call('HSET', KEYS[1], 'f', ARGV[11], 'm', m, ARGV[9], holder)
    else
      local day = string.format('%.0f', proposal + 86400000000)
      redis.call('HSET', KEYS[1], 'f', ARGV[11], 'm', m, ARGV[9], holder, 'k', day)
      redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', math.floor(proposal / 1000) + 172800000))
    end
    return { 'granted', now, proposal }
  end
end
