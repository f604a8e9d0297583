-- Let the work in if the fence passes, in one step: judge, record, work (S22, S23).
--
-- Stands behind `local function work(KEYS, ARGV) ... end`: what the user wrote, from its first line
-- on, so that line numbers in errors are the user's own.
--
-- KEYS  the fence, then the work's own
-- ARGV  token, domain, mode (X or S), then the work's own
-- Gives {1, exclusive, shared, what the work gave} or, if it must not in,
--   {0, exclusive, shared, the fence's domain if it is another}.
--
-- The fence is a hash: domain, and the highest token of each kind, in decimal.
-- Rule 1: exclusive needs a token not below both floors and raises its own; shared needs one not
--   below the exclusive, and raises the shared. Equal passes.
-- Rule 2: tokens are never numbers here: Lua's lose the last digits above 2^53.
-- Rule 3: what must not in writes nothing. Work that fails later leaves a floor that rose: harmless.
-- Rule 4: a fence has no time to live: it must outlast every old holder.

local function below(one, other)
  if #one ~= #other then return #one < #other end
  return one < other
end

local token, domain, mode = ARGV[1], ARGV[2], ARGV[3]
local found = redis.call('HMGET', KEYS[1], 'domain', 'exclusive', 'shared')
local exclusive, shared = found[2] or '0', found[3] or '0'
if found[1] and found[1] ~= domain then return { 0, exclusive, shared, found[1] } end
if below(token, exclusive) or (mode == 'X' and below(token, shared)) then
  return { 0, exclusive, shared }
end

local before = exclusive .. ' ' .. shared
if mode == 'X' then
  exclusive = token
elseif below(shared, token) then
  shared = token
end
if not found[1] or exclusive .. ' ' .. shared ~= before then
  redis.call('HSET', KEYS[1], 'domain', domain, 'exclusive', exclusive, 'shared', shared)
end

local keys, arguments = {}, {}
for at = 2, #KEYS do keys[at - 1] = KEYS[at] end
for at = 4, #ARGV do arguments[at - 3] = ARGV[at] end
return { 1, exclusive, shared, (work(keys, arguments)) }
