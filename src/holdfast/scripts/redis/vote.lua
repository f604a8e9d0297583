-- One node's answer to a Redlock claim: yes with the proposed token, or why not.
--
-- KEYS  record, queue
-- ARGV  what `m` says if it is alone, "ttl mode channel path rest", owner, proposed token, "queue?
--       ticket", "max_ttl nodes run" of the roster, wanted until[, "mode path" of its seat if that is
--       another than that of its place in the queue]
-- Gives the time or {"granted", time, token}, {"busy", time, position, floor, taken slots[, token, expires, rest]},
-- {"floor", time, floor}, {"ahead", time}, {"late", time}, {"barred", time},
-- {"mismatch", time, kind, limit}, {"stranger", time}, {"roster", time, max_ttl, nodes} or
-- {"quarantine", time, how long}.
-- Rule 1 (S20): a token is accepted only above the floor, and not further than a minute ahead of the
--   clock (of the floor, if that is ahead of the clock); then it is the floor.
-- Rule 2 (S21): a node without a roster, or with one of an earlier run, may have forgotten what it
--   granted: it grants nothing. A record of this run that is still there was not forgotten.
-- Rule 3 (S6): late copies and withdrawn owners are refused. An owner proposes ever higher tokens:
--   what comes under a lower one than it holds is a copy of an earlier round.

local MINUTE = 60000000
local owner, proposal = ARGV[3], tonumber(ARGV[4])
local queue, ticket = string.match(ARGV[5], '^(%d) (%d+)$')
local ttl, mode, channel, path, rest = string.match(ARGV[2], '^(%d+) (%u) (%S+) (%S+) (.*)$')
if ARGV[8] then mode, path = string.match(ARGV[8], '^(%u) (%S+)$') end
local kind, limit = string.match(ARGV[1], '^(%a+) (%d+) ')
ttl = tonumber(ttl)
if now > tonumber(ARGV[7]) then return { 'late', now } end
if roster then
  local max_ttl, nodes, run = string.match(ARGV[6], '^(%d+) (%d+) (.*)$')
  if not roster[1] or roster[4] ~= run then return { 'stranger', now } end
  if roster[1] ~= max_ttl or roster[2] ~= nodes then
    return { 'roster', now, roster[1], roster[2] }
  end
  if tonumber(roster[3]) > now then return { 'quarantine', now, tonumber(roster[3]) - now } end
end

local r = open(KEYS[1], KEYS[2], owner, seen)
if barred(r, owner) then return { 'barred', now } end
purge(r)
settle(r)
local mine = r.mine and read_holder(owner, r.mine)
if mine and mine.expires > now then
  if mine.lingering or proposal < mine.token then
    if r.changed then commit(r) end
    return mine.lingering and { 'barred', now } or { 'floor', now, r.floor }
  end
  if mine.path == path then
    if proposal ~= mine.token then
      if proposal <= r.floor then
        if r.changed then commit(r) end
        return { 'floor', now, r.floor }
      end
      if proposal > math.max(now, r.floor) + MINUTE then
        if r.changed then commit(r) end
        return { 'ahead', now }
      end
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
  r.kind, r.limit = kind, tonumber(limit)
elseif r.kind ~= kind or r.limit ~= tonumber(limit) then
  if r.changed then commit(r) end
  return { 'mismatch', now, r.kind, r.limit }
end

local claim = { owner = owner, ttl = ttl, mode = mode, path = path }
local crowd, ahead = rehearse(r, tonumber(ticket))
local room = not full(crowd)
if r.kind == 'semaphore' then
  for _, h in ipairs(r.pathed > 0 and inside(r) or {}) do
    if h.path == claim.path then room = false end
  end
elseif room then
  room = not conflicts(crowd, crowd.list, claim) and not conflicts(ahead, ahead.list, claim)
end

local member = owner .. ' ' .. ARGV[2]
if room then
  if proposal <= r.floor then
    if r.changed then commit(r) end
    return { 'floor', now, r.floor }
  end
  if proposal > math.max(now, r.floor) + MINUTE then
    if r.changed then commit(r) end
    return { 'ahead', now }
  end
  claim.channel, claim.rest = channel, rest
  withdraw(r, member)
  seat(r, claim, proposal)
  if roster and r.buried <= now then
    r.new[#r.new + 1] = 'r'
    r.new[#r.new + 1] = ARGV[6]
  end
  commit(r)
  return { 'granted', now, proposal }
end

if queue == '1' then enqueue(r, ticket, member) end
local position = redis.call('ZRANK', r.queue, member) or r.waiting
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
