-- A vote for a name that nobody holds or waits for on this node: what happens most, so it comes
-- before anything else is even defined. See record.lua for the record, vote.lua for the arguments.
-- Gives the time alone: the proposed token is granted.
local seen = redis.call('HMGET', KEYS[1], 'f', 'm', 'b', 'r')
-- A record that says so itself was granted before by this very run under the same roster, and no
-- memory of it is lost: the roster would say nothing else (rule 2 of vote.lua). Each word of a call
-- costs, so the key of the roster, which is seldom needed, is made here (see redlock_roster.py).
local roster = seen[4] ~= ARGV[6] and redis.call('HMGET',
  string.match(KEYS[1], '^(.*)/') .. '}:roster', 'max_ttl', 'nodes', 'until', 'self')
do
  local proposal, floor = tonumber(ARGV[4]), tonumber(seen[1] or 0)
  if not seen[2] and now <= tonumber(ARGV[7]) and
      proposal > floor and proposal <= math.max(now, floor) + 60000000 and
      (not roster or (roster[1] and tonumber(roster[3]) <= now and tonumber(seen[3] or 0) <= now and
        roster[1] .. ' ' .. roster[2] .. ' ' .. roster[4] == ARGV[6])) then
    local text = ARGV[2]
    if ARGV[8] then  -- of a semaphore, the slot
      local ttl, channel, rest = string.match(text, '^(%d+) %u (%S+) %S+ (.*)$')
      local mode, path = string.match(ARGV[8], '^(%u) (%S+)$')
      text = ttl .. ' ' .. mode .. ' ' .. channel .. ' ' .. path .. ' ' .. rest
    end
    redis.call('HSET', KEYS[1], 'f', ARGV[4], 'm', ARGV[1], ARGV[3],
      ARGV[4] .. ' ' .. stamp .. ' ' .. stamp .. ' 0 0 ' .. text)
    if roster then redis.call('HSET', KEYS[1], 'r', ARGV[6]) end
    if floor < proposal - proposal % 86400000000 then
      redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', math.floor(proposal / 1000) + 172800000))
    end
    return now
  end
end
