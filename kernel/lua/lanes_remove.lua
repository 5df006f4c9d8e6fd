-- Purpose: take a workflow out of whichever lane it stands in.
-- KEYS:    1-4 lanes (zset: workflow_id by claimable time in ms)
-- ARGV:    1 workflow_id (text)
-- Result:  1 when it stood in a lane, else 0

local removed = 0
for lane = 1, 4 do
  removed = removed + redis.call('ZREM', KEYS[lane], ARGV[1])
end
return removed
