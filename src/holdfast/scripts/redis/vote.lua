-- One node's answer to a Redlock claim: yes with the proposed token, or why not.
--
-- KEYS  record, queue, tombstone, roster
-- ARGV  owner, ttl, kind, limit, mode, path, "mode channel path rest", queue?, proposed token,
--       ticket, max_ttl, nodes, wanted until
-- Gives {"granted", time, token}, {"busy", time, position, floor, taken slots[, token, expires, rest]},
-- {"floor", time, floor}, {"ahead", time}, {"late", time}, {"barred", time},
-- {"mismatch", time, kind, limit}, {"stranger", time}, {"roster", time, max_ttl, nodes} or
-- {"quarantine", time, how long}.
-- Rule 1 (S20): a token is accepted only above the floor, and not further than a minute ahead of the
--   clock (of the floor, if that is ahead of the clock); then it is the floor.
-- Rule 2 (S21): a node without a roster does not know what it forgot: it grants nothing.
-- Rule 3 (S6): late copies and withdrawn owners are refused.

local MINUTE = 60000000
local owner, ttl, text = ARGV[1], tonumber(ARGV[2]), ARGV[7]
local proposal, ticket = tonumber(ARGV[9]), tonumber(ARGV[10])
if now > tonumber(ARGV[13]) then return { 'late', now } end
local roster = redis.call('HMGET', KEYS[4], 'max_ttl', 'nodes', 'until')
if not roster[1] then return { 'stranger', now } end
if roster[1] ~= ARGV[11] or roster[2] ~= ARGV[12] then
  return { 'roster', now, roster[1], roster[2] }
end
if tonumber(roster[3]) > now then return { 'quarantine', now, tonumber(roster[3]) - now } end
if redis.call('EXISTS', KEYS[3]) == 1 then return { 'barred', now } end

local r = open(KEYS[1], KEYS[2], owner)
if r.kind then purge(r) end
settle(r)
local mine = r.mine and read_holder(owner, r.mine)
if mine and mine.expires > now then
  if mine.lingering then return { 'barred', now } end
  if mine.path == ARGV[6] then
    if proposal ~= mine.token then
      if proposal <= r.floor then return { 'floor', now, r.floor } end
      r.floor, mine.token, r.raised = proposal, proposal, true
    end
    mine.expires = math.max(math.min(mine.expires, now + mine.ttl), now + ttl)
    mine.ttl = math.max(mine.ttl, ttl)
    write_holder(r, mine)
    commit(r)
    return { 'granted', now, mine.token }
  end
  drop(r, mine)  -- it tries another slot
  r.changed = true
end

if not r.kind or idle(r) then
  r.kind, r.limit = ARGV[3], tonumber(ARGV[4])
elseif r.kind ~= ARGV[3] or r.limit ~= tonumber(ARGV[4]) then
  if r.changed then commit(r) end
  return { 'mismatch', now, r.kind, r.limit }
end

local claim = { owner = owner, ttl = ttl, mode = ARGV[5], path = ARGV[6] }
local crowd, ahead = rehearse(r, ticket)
local room = not full(crowd)
if r.kind == 'semaphore' then
  for _, h in ipairs(r.pathed > 0 and inside(r) or {}) do
    if h.path == claim.path then room = false end
  end
elseif room then
  room = not conflicts(crowd, crowd.list, claim) and not conflicts(ahead, ahead.list, claim)
end

local member = owner .. ' ' .. ARGV[2] .. ' ' .. text
if room then
  if proposal <= r.floor then
    if r.changed then commit(r) end
    return { 'floor', now, r.floor }
  end
  if proposal > math.max(now, r.floor) + MINUTE then
    if r.changed then commit(r) end
    return { 'ahead', now }
  end
  claim.channel, claim.rest = string.match(text, '^%u (%S+) %S+ (.*)$')
  seat(r, claim, proposal)
  commit(r)
  forget(r, member)
  return { 'granted', now, proposal }
end

if ARGV[8] == '1' then enqueue(r, ARGV[10], member) end
local position = redis.call('ZRANK', r.queue, member) or redis.call('ZCARD', r.queue)
local first, slots = nil, {}
for _, h in ipairs(inside(r)) do
  if not first or h.expires < first.expires then first = h end
  slots[#slots + 1] = h.path
end
commit(r)
local answer = { 'busy', now, position, r.floor, table.concat(slots, ' ') }
if first then
  answer[6], answer[7], answer[8] = int(first.token), int(first.expires), first.rest
end
return answer
