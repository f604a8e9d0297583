-- The roster of a Redlock node: proof that it remembers (S21).
--
-- KEYS  roster
-- ARGV  "read", or
--       "form": where there is none, note that one is being made; or
--       "join", the state that was read, max_ttl, nodes, out for how many microseconds, run ids of
--       enrolled nodes…: complete it, or let a complete one know of more runs (if of all nodes: of
--       those only); then always this server's run id, and wanted until
-- Gives {state before, time, run ids it knows…}; states: 0 = none, 1 = being made, 2 = complete,
-- 3 = of an earlier run of this server.
-- Rule 1: max_ttl, nodes and quarantine of a complete roster are never overwritten in the same run.
-- Rule 2: a server that has forgotten since its state was read joins as nothing.

local FORMING = 10000
local roster, run, wanted = KEYS[1], ARGV[#ARGV - 1], tonumber(ARGV[#ARGV])
local known = redis.call('HGETALL', roster)
local fields, answer = {}, { 0, now }
for at = 1, #known, 2 do
  fields[known[at]] = known[at + 1]
  local id = string.match(known[at], '^run:(.*)$')
  if id then answer[#answer + 1] = id end
end
local state = 0
if fields.max_ttl then
  state = fields.self == run and 2 or 3
elseif fields.forming then
  state = 1
end
answer[1] = state
if now > wanted then return answer end
if ARGV[1] == 'form' and state == 0 then
  redis.call('HSET', roster, 'forming', '1')
  redis.call('PEXPIRE', roster, FORMING)
elseif ARGV[1] == 'join' and state == tonumber(ARGV[2]) then
  if state ~= 2 then
    local out = math.max(tonumber(fields['until'] or 0), now + tonumber(ARGV[5]))
    redis.call('HSET', roster, 'max_ttl', ARGV[3], 'nodes', ARGV[4], 'until', int(out), 'self', run)
    redis.call('PERSIST', roster)
  end
  if #ARGV - 7 == tonumber(ARGV[4]) then
    for at = 3, #answer do redis.call('HDEL', roster, 'run:' .. answer[at]) end
  end
  for at = 6, #ARGV - 2 do redis.call('HSET', roster, 'run:' .. ARGV[at], '1') end
end
return answer
