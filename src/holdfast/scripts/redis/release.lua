-- End a claim, whether it holds, waits or was never seen; whoever waits moves up.
--
-- KEYS  record, queue
-- ARGV  what `m` says if it is alone, "ttl mode channel path rest", owner[, linger]; without the last
--       it is sure: granted for longer than until now
-- Gives 1 if it held alone, else {1 = it held, time}.
-- Rule 1 (S6): an owner nobody knows leaves a tombstone: its claim may still be on the way.
-- Rule 2 (S31): with `linger` the seat stays taken, by nobody, for that long; a repeat changes nothing.

local TOMBSTONE = 300000  -- milliseconds
local owner, linger = ARGV[3], tonumber(ARGV[4] or 0)
local r = open(KEYS[1], KEYS[2], owner)
local held = 0
if r.mine then
  local mine = read_holder(owner, r.mine)
  if mine.lingering and mine.expires > now then return { 0, now } end
  if mine.expires > now and not mine.lingering then held = 1 end
  if held == 1 and linger > 0 then
    mine.lingering, mine.ttl, mine.expires = true, linger, now + linger
    keep(r)
    write_holder(r, mine)
    r.soonest = now  -- so that `m` is not what release_sure.lua looks for
  else
    drop(r, mine)
    move_up(r)
  end
  commit(r)
elseif withdraw(r, owner .. ' ' .. ARGV[2]) then
  settle(r)
  move_up(r)
  commit(r)
else
  bury(r, owner, TOMBSTONE)
end
return { held, now }
