-- Enter, or take a place in the queue, or say who is in the way. Never waits.
--
-- KEYS  record, queue
-- ARGV  what `m` says if it is alone, "ttl mode channel path rest", owner, queue?, wanted until
-- Gives the time, which is the token, or {"granted", time, token} or {"busy", time, position, holder's text} or {"late", time} or
-- {"barred", time} or {"mismatch", time, kind, limit}.
-- Rule 1 (S6): a copy that comes when nobody wants it any more, or after its own release, is refused.
-- Rule 2: an owner that is inside gets the same token and a full TTL, never less than it has.
-- Rule 3: an owner in the queue keeps its place.

local owner = ARGV[3]
local ttl, mode, channel, path, rest = string.match(ARGV[2], '^(%d+) (%u) (%S+) (%S+) (.*)$')
local kind, limit = string.match(ARGV[1], '^(%a+) (%d+) ')
ttl = tonumber(ttl)
if now > tonumber(ARGV[5]) then return { 'late', now } end

local r = open(KEYS[1], KEYS[2], owner, seen)
if barred(r, owner) then return { 'barred', now } end

-- Who has just been let in, by this very script, must not be seated again.
local function let_in()
  for _, h in ipairs(r.seated) do
    if h.owner == owner then
      commit(r)
      return { 'granted', now, h.token }
    end
  end
end

settle(r)
local granted = let_in()
if granted then return granted end
local mine = r.mine and read_holder(owner, r.mine)
if mine and mine.expires > now then
  if mine.lingering then return { 'barred', now } end
  mine.expires = math.max(math.min(mine.expires, now + mine.ttl), now + ttl)
  mine.ttl = math.max(mine.ttl, ttl)
  write_holder(r, mine)
  commit(r)
  return { 'granted', now, mine.token }
end

local alone = holders(r) == 0
if alone then
  r.kind, r.limit = kind, tonumber(limit)
elseif r.kind ~= kind or r.limit ~= tonumber(limit) then
  if r.changed then commit(r) end
  return { 'mismatch', now, r.kind, r.limit }
end

local member = owner .. ' ' .. ARGV[2]
local claim = {
  owner = owner, ttl = ttl, mode = mode, channel = channel, path = path, rest = rest,
}
local queue, room, waits, added = ARGV[4] == '1', alone, false, false
if r.waiting > 0 and not alone then
  if r.kind == 'tree' then
    waits = redis.call('ZSCORE', r.queue, member)
  elseif queue then
    -- Without paths whoever waits is in the way of all that come later (rule 1 of the record).
    added = enqueue(r, member)
    waits = not added
  end
end
if waits then
  move_up(r)
  granted = let_in()
  if granted then return granted end
elseif not alone and not added and not excluded(r, claim) then
  if r.kind == 'tree' then
    local ahead = move_up(r)
    room = not excluded(r, claim) and not conflicts(ahead, ahead.list, claim)
  else
    room = r.waiting == 0
  end
end

if room then
  seat(r, claim, mint(r))
  commit(r)
  return { 'granted', now, claim.token }
end

if queue and not waits and not added then
  added = enqueue(r, member)
  waits = not added
end
local position = added and r.waiting - 1 or r.waiting
if waits then position = redis.call('ZRANK', r.queue, member) end
local first
for _, h in ipairs(inside(r)) do
  if not first or h.expires < first.expires then first = h end
end
commit(r)
if not first then return { 'busy', now, position } end
return { 'busy', now, position, int(first.token), int(first.expires), first.rest }
