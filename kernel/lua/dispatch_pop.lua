-- Purpose: take due dispatch candidates; what is taken is removed.
-- KEYS:    1 candidates (zset: object id by when to look at it, in ms)
-- ARGV:    1 how many at most (number)  2 offset_ms (number)
-- Result:  list of object ids, earliest first

local limit = tonumber(ARGV[1])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) + tonumber(ARGV[2])
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, limit)
if #due > 0 then
  redis.call('ZREM', KEYS[1], unpack(due))
end
return due
