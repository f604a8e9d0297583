-- Work once per key: keep what it gave, and give that to whoever comes later.
--
-- Stands behind `local function work(KEYS, ARGV) ... end`, as fenced.lua does.
--
-- KEYS  the marker, then the work's own
-- ARGV  milliseconds to keep the marker (0 = for ever), then the work's own
-- Gives {what the work gave}, the first time or now.
--
-- Rule 1: nobody runs beside a script, so nobody meets work that is under way.
-- Rule 2: work that raises, or gives an error, leaves no marker: it may be tried again.
-- Rule 3: what is kept is packed by MessagePack: unlike JSON it keeps whole numbers and any bytes,
--   so the first and the last caller are given the same.

local kept = redis.call('GET', KEYS[1])
if not kept then
  local keys, arguments = {}, {}
  for at = 2, #KEYS do keys[at - 1] = KEYS[at] end
  for at = 2, #ARGV do arguments[at - 1] = ARGV[at] end
  local given = work(keys, arguments)
  if type(given) == 'table' and given.err then return { given } end
  kept = cmsgpack.pack(given)
  if ARGV[1] == '0' then
    redis.call('SET', KEYS[1], kept)
  else
    redis.call('SET', KEYS[1], kept, 'PX', ARGV[1])
  end
end
return { (cmsgpack.unpack(kept)) }
