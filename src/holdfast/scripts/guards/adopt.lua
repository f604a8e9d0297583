-- Move a fence to tokens of another domain (S22); floors start again at 0.
--
-- KEYS  the fence
-- ARGV  domain
-- Gives {the domain it was in, empty if it had none}, or {} and changes nothing if it is in this one.

local previous = redis.call('HGET', KEYS[1], 'domain') or ''
if previous == ARGV[1] then return {} end
redis.call('HSET', KEYS[1], 'domain', ARGV[1], 'exclusive', '0', 'shared', '0')
return { previous }
