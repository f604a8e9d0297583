-- Seat again, on a node that came back, holders whom a majority has just confirmed.
--
-- KEYS  roster, then record and queue of each claim
-- ARGV  then for each claim: owner, ttl, kind, limit, mode, path, "mode channel path rest",
--       revision, token; and wanted until
-- Gives {how many, time}.
-- Rule 1: the floor does not keep this holder out, and never falls: with a majority behind it,
--   whoever raised the floor since holds beside it (a reader, a permit) or voted in vain.
-- Rule 2 (S6): late copies are refused, and owners that have let go meanwhile.
-- Rule 3: who waits here for what a majority has granted him waits no more.

local WORDS = 9
local restored = 0
local quarantined = redis.call('HGET', KEYS[1], 'until')
if not quarantined or tonumber(quarantined) > now or now > tonumber(ARGV[#ARGV]) then
  return { 0, now }
end
for at = 2, #KEYS, 2 do
  local first = (at - 2) / 2 * WORDS
  local owner, kind, limit = ARGV[first + 1], ARGV[first + 3], tonumber(ARGV[first + 4])
  local claim = {
    owner = owner, ttl = tonumber(ARGV[first + 2]), mode = ARGV[first + 5],
    path = ARGV[first + 6],
  }
  local token = tonumber(ARGV[first + 9])
  local r = open(KEYS[at], KEYS[at + 1], owner)
  settle(r)
  local fits = not r.kind or holders(r) == 0 or (r.kind == kind and r.limit == limit)
  if not r.mine and fits and not barred(r, owner) then
    r.kind, r.limit = kind, limit
    if not excluded(r, claim) then
      claim.channel, claim.rest = string.match(ARGV[first + 7], '^%u (%S+) %S+ (.*)$')
      withdraw(r, owner .. ' ' .. ARGV[first + 2] .. ' ' .. ARGV[first + 7])
      seat(r, claim, token)
      claim.revision = tonumber(ARGV[first + 8])
      r.new = {}
      write_holder(r, claim)
      restored = restored + 1
      r.changed = true
    end
  end
  if r.changed then commit(r) end
end
return { restored, now }
