-- This server's time, in microseconds: the beginning of every script.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if now >= 9007199254740992 then
  return redis.error_reply('CLOCK this server says it is later than the year 2255')
end
