-- The queue of a server of its own: first come, first served, and the server hands over.
--
-- Rule 1: whoever leaves makes the next ones owners, in the same script, with tokens of their own.
-- Rule 2: who is let in hears of it by PUBLISH; nobody listening = that waiter is gone, and skipped.
-- Rule 3: so nobody waits where nobody holds.

-- Take a place behind all others, unless it has one; whatever the clock says, later is behind.
local function enqueue(r, member)
  local score = math.max(now, r.last + 1)
  if redis.call('ZADD', r.queue, 'NX', int(score), member) == 0 then
    r.waiting = redis.call('ZCARD', r.queue)
    return false
  end
  if r.waiting == 0 then
    redis.call('PEXPIREAT', r.queue, int(math.floor((now + 2 * DAY) / 1000)))
  end
  r.last, r.waiting = score, r.waiting + 1
  return true
end

local function withdraw(r, member)
  if r.waiting == 0 or redis.call('ZREM', r.queue, member) == 0 then return false end
  r.waiting = r.waiting - 1
  return true
end

-- Let in, in order, whoever may enter now; return a crowd of those who have to stay, as far as
-- they were looked at: one without a path and X stands for all behind it.
move_up = function(r)
  local ahead = { plain = 0, exclusive = 0, pathed = 0, list = {} }
  local size = 1
  while r.waiting > #ahead.list and not full(r) and ahead.exclusive == 0 do
    local from = #ahead.list
    local batch
    local popped = holders(r) == 0  -- whoever is first enters, or is gone
    if popped then
      batch = redis.call('ZPOPMIN', r.queue)
      batch[2] = nil
    else
      batch = redis.call('ZRANGE', r.queue, from, from + size - 1)
    end
    if #batch == 0 then
      r.waiting = #ahead.list
      break
    end
    for _, member in ipairs(batch) do
      if full(r) or ahead.exclusive > 0 then break end
      local w = read_waiter(member)
      if excluded(r, w) or conflicts(ahead, ahead.list, w) then
        count(ahead, w, 1)
        ahead.list[#ahead.list + 1] = w
      else
        if popped then
          r.waiting = r.waiting - 1
        else
          withdraw(r, member)
        end
        local token = mint(r)
        local message = 'grant ' .. w.owner .. ' ' .. int(token) .. ' ' .. int(now)
        if tell(w.channel, message) then seat(r, w, token) end
      end
    end
    size = 32
  end
  return ahead
end

idle = function(r)
  return holders(r) == 0
end

waiting = function(r)
  return redis.call('ZRANGE', r.queue, 0, -1, 'WITHSCORES')
end

