-- Purpose: how full each lane is and how long its first due member has been waiting, all at one moment.
-- KEYS:    1-4 lanes (zset: workflow_id by claimable time in ms)
-- ARGV:    1 offset_ms (number)
-- Result:  four times {depth, ready, ms its oldest ready member has been waiting}

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) + tonumber(ARGV[1])

local figures = {}
for lane = 1, 4 do
  local head = redis.call('ZRANGE', KEYS[lane], 0, 0, 'WITHSCORES')
  local waited = head[2] and math.max(0, now - tonumber(head[2])) or 0
  figures[lane] = {redis.call('ZCARD', KEYS[lane]), redis.call('ZCOUNT', KEYS[lane], '-inf', now), waited}
end
return figures
