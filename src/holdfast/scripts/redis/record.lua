-- The record of one lock name. A script is clock.lua, then the verb's shortcut for a name that
-- nobody else uses (*_alone.lua; *_sure.lua before the clock), then this file, then what the queue
-- does (granting.lua on a server of its own, hinting.lua on a Redlock node), then the verb's own file.
--
-- A record is a hash and a queue; both carry the same hash tag, so they share a slot:
--   {key}    f       floor: the highest token ever given under this name
--            m       "kind limit last soonest plain exclusive pathed waiting": only while anybody
--                    holds or waits
--            b       until when there may be tombstones
--            r       on a Redlock node: "max_ttl nodes run" of the roster under which it was last
--                    granted, while there are no tombstones
--            <owner> "token from since revision lingering ttl mode channel path rest": a holder,
--                    whose time is over at from + ttl
--   {key}:q  a sorted set of "owner ttl mode channel path rest", scored by the time of arrival
--   {key}:x:<owner>  a tombstone: this owner let go before its claim came
-- Times are microseconds of this server's clock. `path` is "." for none. `rest` is for people.
-- In `m`: no holder's time is over before `soonest` (1: nobody has looked yet); `plain` holders have no path, `exclusive` of
-- them are X, `pathed` ones have a path; so many are `waiting`, the `last` of them since then.
--
-- Rule 1 (S3, S4): X conflicts with all, S with X, where one path is a prefix of the other. A claim
--   enters when it conflicts with no holder and no earlier waiter, and fewer than `limit` hold.
--   Whoever has no path overlaps with everybody: it is enough to count those.
-- Rule 2: a verb first settles the record: holders whose time is over go, waiters move up.
-- Rule 3 (S18): a token is max(floor + 1, clock), minted with the grant.
-- Rule 4 (S19): the hash outlives the token's own time by one to two days; from then on the clock
--   alone keeps tokens rising. It is told so by the first token of a day.
-- Rule 5: a server without memory left refuses a script's first write if it needs some. Wherever a
--   lock is renewed or given back, the first write is one that needs none.

local DAY = 86400000000
local BATCH = 500

-- The queue's part: let the waiters have the room there is; is nobody left; who waits?
local move_up, idle, waiting

local function int(number)
  return string.format('%.0f', number)
end

local function open(key, queue, owner, seen)
  local found = seen or redis.call('HMGET', key, 'f', 'm', 'b', owner)
  if seen then found[4] = redis.call('HGET', key, owner) end
  local floor = tonumber(found[1] or 0)
  local r = {
    key = key, queue = queue, floor = floor, before = floor, buried = tonumber(found[3] or 0),
    mine = found[4], soonest = 0, limit = 0, plain = 0, exclusive = 0, pathed = 0, waiting = 0,
    last = 0,
    gone = {}, new = {}, seated = {},
  }
  if found[2] then
    local kind, limit, last, soonest, plain, exclusive, pathed, waiting =
      string.match(found[2], '^(%a+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
    r.last = tonumber(last)
    r.kind, r.limit, r.soonest, r.waiting = kind, tonumber(limit), tonumber(soonest), tonumber(waiting)
    r.plain, r.exclusive, r.pathed = tonumber(plain), tonumber(exclusive), tonumber(pathed)
  end
  return r
end

-- Has this owner let go before (S6)?
local function barred(r, owner)
  return r.buried > now and redis.call('EXISTS', r.key .. ':x:' .. owner) == 1
end

local function bury(r, owner, millis)
  redis.call('SET', r.key .. ':x:' .. owner, '1', 'PX', millis)
  redis.call('HSET', r.key, 'b', int(math.max(r.buried, now + millis * 1000)), 'r', '')
  redis.call('PEXPIREAT', r.key, int(math.floor((math.max(r.floor, now) + 2 * DAY) / 1000)))
end

local function read_holder(owner, text)
  local token, from, since, revision, lingering, ttl, mode, channel, path, rest =
    string.match(text, '^(%d+) (%d+) (%d+) (%d+) (%d) (%d+) (%u) (%S+) (%S+) (.*)$')
  return {
    owner = owner, token = tonumber(token), expires = from + ttl, since = since,
    revision = tonumber(revision), lingering = lingering == '1', ttl = tonumber(ttl), mode = mode,
    channel = channel, path = path, rest = rest,
  }
end

local function write_holder(r, h)
  local new = r.new
  new[#new + 1] = h.owner
  new[#new + 1] = int(h.token) .. ' ' .. int(h.expires - h.ttl) .. ' ' .. h.since .. ' ' ..
    int(h.revision) .. (h.lingering and ' 1 ' or ' 0 ') .. int(h.ttl) .. ' ' .. h.mode .. ' ' ..
    h.channel .. ' ' .. h.path .. ' ' .. h.rest
  if h.expires < r.soonest or r.soonest == 0 then r.soonest = h.expires end
end

local function read_waiter(member)
  local owner, ttl, mode, channel, path, rest =
    string.match(member, '^(%S+) (%d+) (%u) (%S+) (%S+) (.*)$')
  return {
    owner = owner, ttl = tonumber(ttl), mode = mode, channel = channel, path = path, rest = rest,
  }
end

local function count(crowd, one, by)
  if one.path == '.' then
    crowd.plain = crowd.plain + by
    if one.mode == 'X' then crowd.exclusive = crowd.exclusive + by end
  else
    crowd.pathed = crowd.pathed + by
  end
end

-- Every holder, looked at once per script and then kept up to date. Whose time is over is dropped.
-- A clock that was set back must not keep anybody for longer than its TTL.
local function inside(r)
  if r.inside then return r.inside end
  local dropped = {}
  for _, owner in ipairs(r.gone) do dropped[owner] = true end
  local found = redis.call('HGETALL', r.key)
  r.inside, r.plain, r.exclusive, r.pathed, r.soonest = {}, 0, 0, 0, 0
  for at = 1, #found, 2 do
    local owner = found[at]
    if #owner > 1 and not dropped[owner] then
      local h = read_holder(owner, found[at + 1])
      if h.expires <= now then
        r.gone[#r.gone + 1] = owner
      else
        if h.expires > now + h.ttl then
          h.expires = now + h.ttl
          write_holder(r, h)
        end
        r.inside[#r.inside + 1] = h
      end
    end
  end
  for _, h in ipairs(r.seated) do r.inside[#r.inside + 1] = h end
  for _, h in ipairs(r.inside) do
    count(r, h, 1)
    if h.expires < r.soonest or r.soonest == 0 then r.soonest = h.expires end
  end
  return r.inside
end

local function drop(r, h)
  r.gone[#r.gone + 1] = h.owner
  count(r, h, -1)
  for at = #r.new - 1, 1, -2 do  -- it may have been let in, or cut short, by this very script
    if r.new[at] == h.owner then
      table.remove(r.new, at)
      table.remove(r.new, at)
    end
  end
  for at, one in ipairs(r.inside or {}) do
    if one.owner == h.owner then table.remove(r.inside, at) break end
  end
end

-- The grant: a token, a full TTL from now, a seat.
local function seat(r, one, token)
  r.floor = math.max(r.floor, token)
  one.token, one.expires, one.since, one.revision = token, now + one.ttl, int(now), 0
  write_holder(r, one)
  count(r, one, 1)
  r.seated[#r.seated + 1] = one
  if r.inside then r.inside[#r.inside + 1] = one end
end

-- Tell a client something; gives whether it may have heard. '-' is the channel of one that may not
-- listen, and looks for itself. Who may not publish (an error) cannot know whether anybody listens.
local function tell(channel, message)
  if channel == '-' then return true end
  local heard = redis.pcall('PUBLISH', channel, message)
  return type(heard) == 'table' or heard > 0
end

local function overlap(one, other)
  if one == '.' or other == '.' then return true end
  if #one > #other then one, other = other, one end
  return string.sub(other .. '/', 1, #one + 1) == one .. '/'
end

local function conflicts(crowd, list, claim)
  if crowd.exclusive > 0 or (claim.mode == 'X' and crowd.plain > 0) then return true end
  if crowd.pathed > 0 then
    for _, one in ipairs(list) do
      if one.path ~= '.' and (claim.mode == 'X' or one.mode == 'X') and
          overlap(claim.path, one.path) then
        return true
      end
    end
  end
  return false
end

local function holders(r)
  return r.plain + r.pathed
end

local function mint(r)
  return math.max(r.floor + 1, now)
end

-- Nobody at all could enter.
local function full(r)
  return r.exclusive > 0 or (r.limit > 0 and holders(r) >= r.limit)
end

local function excluded(r, claim)
  return full(r) or conflicts(r, r.pathed > 0 and inside(r), claim)
end

local function settle(r)
  if now >= r.soonest and holders(r) > 0 then
    inside(r)
    if #r.gone > 0 then move_up(r) end
    r.changed = true
  end
end

local function in_batches(command, key, list)
  for from = 1, #list, BATCH do
    redis.call(command, key, unpack(list, from, math.min(from + BATCH - 1, #list)))
  end
end

local function keep(r)
  redis.call('PEXPIREAT', r.key, int(math.floor((math.max(r.floor, now) + 2 * DAY) / 1000)))
end

-- Write what has changed; of a record that nobody needs, the floor is all that stays.
local function commit(r)
  local gone, new = r.gone, r.new
  if idle(r) then
    gone[#gone + 1] = 'm'
    new = {}
  else
    new[#new + 1] = 'm'
    new[#new + 1] = r.kind .. ' ' .. int(r.limit) .. ' ' .. int(r.last) .. ' ' .. int(r.soonest) .. ' ' ..
      int(r.plain) .. ' ' .. int(r.exclusive) .. ' ' .. int(r.pathed) .. ' ' .. int(r.waiting)
  end
  if #r.seated > 0 or r.raised then
    new[#new + 1] = 'f'
    new[#new + 1] = int(r.floor)
  end
  in_batches('HDEL', r.key, gone)
  in_batches('HSET', r.key, new)
  if r.before < r.floor - r.floor % DAY then keep(r) end
end
