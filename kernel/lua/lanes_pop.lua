-- Purpose: take the next due workflow by weighted turns over the lanes, or say when the next one is due.
-- KEYS:    1-4 lanes, most urgent first (zset: workflow_id by claimable time in ms)
--          5 round (hash: 1-4 = turns the lane has left, burst = places left in the burst window)
-- ARGV:    1 offset_ms (number)  2 size of the burst window (number)  3-6 turns of each lane in a round (number)
-- Result:  {workflow_id}, or {false, ms until the next one is due; -1 when the lanes are empty}

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) + tonumber(ARGV[1])
local window = tonumber(ARGV[2])
local round = KEYS[5]

local first, next_due = {}, nil
for lane = 1, 4 do
  local head = redis.call('ZRANGE', KEYS[lane], 0, 0, 'WITHSCORES')
  if head[1] then
    local due = tonumber(head[2])
    if due <= now then first[lane] = head[1] end
    next_due = math.min(next_due or due, due)
  end
end

local function take(lane)
  redis.call('ZREM', KEYS[lane], first[lane])
  return {first[lane]}
end

local burst = tonumber(redis.call('HGET', round, 'burst')) or 0

-- Nothing due anywhere: the traffic that comes next finds the window open and a round of its own.
if not next_due or next_due > now then
  if burst ~= window then
    redis.call('DEL', round)
    redis.call('HSET', round, 'burst', window)
  end
  return {false, next_due and next_due - now or -1}
end

if burst > 0 then
  redis.call('HSET', round, 'burst', first[1] and burst - 1 or 0)
  if first[1] then return take(1) end
end

-- The most urgent lane that has both turns left and a due member. A round ends when there is none.
local function take_turn()
  for lane = 1, 4 do
    local turns = tonumber(redis.call('HGET', round, lane)) or tonumber(ARGV[2 + lane])
    if first[lane] and turns > 0 then
      redis.call('HSET', round, lane, turns - 1)
      return take(lane)
    end
  end
end

local taken = take_turn()
if not taken then
  redis.call('HDEL', round, 1, 2, 3, 4)
  taken = take_turn()
end
return taken
