-- This server's time, in microseconds, as text and as a number: the beginning of every script.
local time = redis.call('TIME')
local stamp = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))
local now = tonumber(stamp)
if now >= 9007199254740992 then
  return redis.error_reply('CLOCK this server says it is later than the year 2255')
end
