-- Remove all holders, or the one with that token, and tell them; the queue stays and moves up.
--
-- KEYS  record, queue
-- ARGV  token, or nothing for all
-- Gives {how many, time, their owners…}.

local r = open(KEYS[1], KEYS[2], '')
settle(r)
local broken = {}
if holders(r) > 0 then
  for _, h in ipairs(inside(r)) do
    if ARGV[1] == '' or int(h.token) == ARGV[1] then broken[#broken + 1] = h end
  end
  for _, h in ipairs(broken) do
    drop(r, h)
    tell(h.channel, 'lost ' .. h.owner .. ' forced')
  end
  if #broken > 0 then move_up(r) end
end
if r.kind and (r.changed or #broken > 0) then commit(r) end
local answer = { #broken, now }
for _, h in ipairs(broken) do answer[#answer + 1] = h.owner end
return answer
