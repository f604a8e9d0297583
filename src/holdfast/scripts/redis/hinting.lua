-- The queue of a Redlock node: it lets nobody in by itself, it tells who could be (S20).
--
-- Rule 1: waiters stand by ticket, which each client chose once for all nodes; so all nodes put the
--   same one first, and whoever is first everywhere gets a majority.
-- Rule 2: a claim enters only if it would after all earlier tickets had entered.
-- Rule 3: a waiter that asks no more is forgotten: {key}:qs keeps until when each one counts. One
--   that nobody can reach by PUBLISH is forgotten at once.

local FRESH = 2500000

local function enqueue(r, ticket, member)
  local seen, day = r.queue .. 's', int(math.floor((now + DAY) / 1000))
  redis.call('ZADD', r.queue, ticket, member)
  redis.call('ZADD', seen, int(now + FRESH), member)
  redis.call('PEXPIREAT', r.queue, day)
  redis.call('PEXPIREAT', seen, day)
  r.waiting = redis.call('ZCARD', r.queue)
end

local function withdraw(r, member)
  if r.waiting == 0 or redis.call('ZREM', r.queue, member) == 0 then return false end
  redis.call('ZREM', r.queue .. 's', member)
  r.waiting = redis.call('ZCARD', r.queue)
  return true
end

local function purge(r)
  if r.waiting == 0 then return end
  local stale = redis.call('ZRANGEBYSCORE', r.queue .. 's', '-inf', int(now), 'LIMIT', 0, 100)
  for _, member in ipairs(stale) do
    withdraw(r, member)
    r.changed = true
  end
end

-- The slots of a semaphore are taken one by one: whoever waits wants any of them.
local function clash(r, crowd, claim)
  return r.kind ~= 'semaphore' and conflicts(crowd, crowd.list, claim)
end

-- Let the waiters before a ticket (all, without one) enter in thought. Gives the crowd that would
-- be inside, the crowd that would still wait, and who would have entered.
local function rehearse(r, ticket)
  local crowd = {
    plain = r.plain, exclusive = r.exclusive, pathed = r.pathed, limit = r.limit, list = {},
  }
  for at, one in ipairs(r.pathed > 0 and inside(r) or {}) do crowd.list[at] = one end
  local ahead = { plain = 0, exclusive = 0, pathed = 0, list = {} }
  local entering, from = {}, 0
  while r.waiting > from and not full(crowd) and ahead.exclusive == 0 do
    local batch = redis.call('ZRANGE', r.queue, from, from + 15, 'WITHSCORES')
    if #batch == 0 then return crowd, ahead, entering end
    for at = 1, #batch, 2 do
      if ticket and tonumber(batch[at + 1]) >= ticket then return crowd, ahead, entering end
      if full(crowd) or ahead.exclusive > 0 then break end
      local w = read_waiter(batch[at])
      w.member = batch[at]
      local where = ahead
      if not clash(r, crowd, w) and not clash(r, ahead, w) then
        where = crowd
        entering[#entering + 1] = w
      end
      count(where, w, 1)
      where.list[#where.list + 1] = w
      from = from + 1
    end
  end
  return crowd, ahead, entering
end

move_up = function(r)
  local again = true
  while again do
    again = false
    local _, _, entering = rehearse(r)
    for _, w in ipairs(entering) do
      if not tell(w.channel, 'free ' .. w.owner) then
        withdraw(r, w.member)
        again = true
      end
    end
  end
end

idle = function(r)
  return holders(r) == 0 and r.waiting == 0
end

waiting = function(r)
  purge(r)
  return redis.call('ZRANGE', r.queue, 0, -1, 'WITHSCORES')
end

