-- Purpose: queue a workflow in one lane; a more urgent lane wins, and the earlier of two times stays.
-- KEYS:    1-4 lanes, most urgent first (zset: workflow_id by claimable time in ms)
-- ARGV:    1 workflow_id (text)  2 lane 0-3 (number)  3 due in ms (number)
--          4 offset_ms (number)  5 ms from now before which it is not due, 0 for none (number)
--          6 channel on which the workers are woken, empty for none (text)
-- Result:  1 when the queue has changed, 0 when the workflow already stands there or in a more urgent lane

local workflow_id = ARGV[1]
local wanted = tonumber(ARGV[2]) + 1
local due = tonumber(ARGV[3])
local pause = tonumber(ARGV[5])
local channel = ARGV[6]

if pause > 0 then
  local time = redis.call('TIME')
  due = math.max(due, tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) + tonumber(ARGV[4]) + pause)
end

-- A script is one step: whoever is woken finds the queue as it is at the end.
if channel ~= '' then
  redis.call('PUBLISH', channel, '')
end

for lane = 1, 4 do
  local score = redis.call('ZSCORE', KEYS[lane], workflow_id)
  if score then
    local stands = tonumber(score)
    if lane < wanted or (lane == wanted and stands <= due) then
      return 0
    end
    due = math.min(due, stands)
    redis.call('ZREM', KEYS[lane], workflow_id)
  end
end
redis.call('ZADD', KEYS[wanted], due, workflow_id)
return 1
