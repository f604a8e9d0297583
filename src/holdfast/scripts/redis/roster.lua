-- The roster of a Redlock node: proof that it remembers (S21).
--
-- KEYS  roster
-- ARGV  "read"
--       "form", wanted until: where there is none, note that one is being made, for some seconds
--       "join", max_ttl, nodes, out for how many microseconds, run ids of all nodes…: complete it
-- Gives {state before, time, run ids it knows…}; states: 0 = none, 1 = being made, 2 = complete.
-- Rule: a complete roster is never overwritten.

local FORMING = 10000
local roster = KEYS[1]
local known = redis.call('HGETALL', roster)
local state = 0
local answer = { 0, now }
for at = 1, #known, 2 do
  local id = string.match(known[at], '^run:(.*)$')
  if id then answer[#answer + 1] = id end
  if known[at] == 'max_ttl' then
    state = 2
  elseif state == 0 then
    state = 1
  end
end
answer[1] = state
if ARGV[1] == 'form' and state == 0 and now <= tonumber(ARGV[2]) then
  redis.call('HSET', roster, 'forming', '1')
  redis.call('PEXPIRE', roster, FORMING)
elseif ARGV[1] == 'join' and state < 2 then
  redis.call('HSET', roster, 'max_ttl', ARGV[2], 'nodes', ARGV[3],
    'until', int(now + tonumber(ARGV[4])))
  for at = 5, #ARGV do redis.call('HSET', roster, 'run:' .. ARGV[at], '1') end
  redis.call('PERSIST', roster)
end
return answer
