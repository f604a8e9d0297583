-- Show records: who holds, and who waits in which order.
--
-- KEYS  record and queue of each
-- Gives the time, then for each {kind, limit, holders, waiters}; holders as owner, text, …, and
-- waiters as text, time of arrival, …

local answer = { now }
for at = 1, #KEYS, 2 do
  local r = open(KEYS[at], KEYS[at + 1], '')
  settle(r)
  local queued = r.kind and waiting(r)  -- may drop some
  if r.changed then commit(r) end
  local shown = {}
  if r.kind and not idle(r) then
    local found = redis.call('HGETALL', r.key)
    for field = 1, #found, 2 do
      if #found[field] > 1 then
        shown[#shown + 1] = found[field]
        shown[#shown + 1] = found[field + 1]
      end
    end
    answer[#answer + 1] = { r.kind, r.limit, shown, queued }
  else
    answer[#answer + 1] = { '', 0, {}, {} }
  end
end
return answer
