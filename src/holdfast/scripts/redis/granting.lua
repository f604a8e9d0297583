-- The queue of a server of its own: first come, first served, and the server hands over.
--
-- Rule 1: whoever leaves makes the next ones owners, in the same script, with tokens of their own.
-- Rule 2: who is let in hears of it by PUBLISH; nobody listening = that waiter is gone, and skipped.
-- Rule 3: so nobody waits where nobody holds.

local function enqueue(r, member)
  local last = redis.call('ZRANGE', r.queue, -1, -1, 'WITHSCORES')[2]
  local score = math.max(now, tonumber(last or 0) + 1)
  redis.call('ZADD', r.queue, int(score), member)
  redis.call('PEXPIREAT', r.queue, int(math.floor((now + DAY) / 1000)))
  r.waiting = redis.call('ZCARD', r.queue)
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
    local batch = redis.call('ZRANGE', r.queue, from, from + size - 1)
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
        withdraw(r, member)
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

