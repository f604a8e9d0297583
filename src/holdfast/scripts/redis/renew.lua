-- Give each holder its full TTL again; never creates, never revives.
--
-- KEYS  record and queue of each claim
-- ARGV  owner, revision, ttl of each claim; on a Redlock node also its path, if known: an owner may
--       have left another slot of a semaphore behind on a node that was silent
-- Gives the time, then for each claim 1 = renewed, 0 = nobody holds, 2 = somebody else does.
-- Rule (S14): a renewal sent before an extend, and come after it, may add time but take none away.

local answer, words = { now }, #ARGV / #KEYS * 2
for at = 1, #KEYS, 2 do
  local first = (at - 1) / 2 * words
  local owner, revision, ttl = ARGV[first + 1], tonumber(ARGV[first + 2]), tonumber(ARGV[first + 3])
  local path = words == 4 and ARGV[first + 4] or ''
  local r = open(KEYS[at], KEYS[at + 1], owner)
  local mine = r.mine and read_holder(owner, r.mine)
  if mine and mine.expires > now and not mine.lingering and (path == '' or path == mine.path) then
    if revision < mine.revision then
      mine.expires, mine.ttl = math.max(mine.expires, now + ttl), math.max(mine.ttl, ttl)
    else
      mine.expires, mine.revision, mine.ttl = now + ttl, revision, ttl
    end
    local soonest = r.soonest
    write_holder(r, mine)
    keep(r)
    if r.soonest ~= soonest then
      commit(r)
    else
      redis.call('HSET', r.key, unpack(r.new))
    end
    answer[#answer + 1] = 1
  else
    settle(r)
    if r.changed then commit(r) end
    answer[#answer + 1] = holders(r) > 0 and 2 or 0
  end
end
return answer
