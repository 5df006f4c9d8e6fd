-- Purpose: how much of a resource is in use, started and waited for, at one moment.
-- KEYS:    1 held (zset: owner by expiry in ms)  2 starts (zset: one entry by its time in µs)
--          3 asked (zset: owner by last refusal in ms)
-- ARGV:    1 offset_ms (number)  2 ms until a silent waiter is forgotten (number)
-- Result:  {places held, starts in the last second, waiting owners}

local time = redis.call('TIME')
local now_us = tonumber(time[1]) * 1000000 + tonumber(time[2]) + tonumber(ARGV[1]) * 1000
local now = math.floor(now_us / 1000)

local function after(key, score)
  return redis.call('ZCOUNT', key, '(' .. string.format('%.0f', score), '+inf')
end

return {after(KEYS[1], now), after(KEYS[2], now_us - 1000000), after(KEYS[3], now - tonumber(ARGV[2]))}
