-- Give back what one node granted of a claim that got no majority; its place in the queue stays.
--
-- KEYS  record, queue
-- ARGV  owner, ttl, "mode channel path rest", ticket, the token that was proposed in vain
-- Gives {1 = it held, time}.
-- Rule: what was granted under a higher token stays: this is a late copy, of an earlier round.

local owner = ARGV[1]
local r = open(KEYS[1], KEYS[2], owner)
local mine = r.mine and read_holder(owner, r.mine)
if not mine or mine.lingering or mine.token > tonumber(ARGV[5]) then return { 0, now } end
drop(r, mine)
enqueue(r, ARGV[4], owner .. ' ' .. ARGV[2] .. ' ' .. ARGV[3])
move_up(r)
commit(r)
return { 1, now }
