-- Purpose: append a notice to whichever list there is; where there is none, begin one that any writer's replaces.
-- KEYS:    1 frames (list)  2 state (hash: generation, length, ended, write, offset)
-- ARGV:    1 offset_ms (number)  2 ms a live stream is kept (number)  3 frame (bytes)
-- Result:  {'ok', offset}; or {'ended'}; or {'gone'}: frames were lost, and only their writer can send them again

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) + tonumber(ARGV[1])
local frames, state = KEYS[1], KEYS[2]

if redis.call('HGET', state, 'ended') then return {'ended'} end

-- A list begun by a notice is numbered below every writer's (theirs are ms since 1970, or above): a writer whose list
-- was lost then finds it gone, and opens another, instead of taking the notice's list for a newer writer's.
if redis.call('EXISTS', state) == 0 then
  redis.call('DEL', frames)
  redis.call('HSET', state, 'generation', now - 1000000000000)
end

local length = tonumber(redis.call('HGET', state, 'length')) or 0
if redis.call('LLEN', frames) ~= length then return {'gone'} end

redis.call('RPUSH', frames, ARGV[3])
redis.call('HSET', state, 'length', length + 1)
redis.call('PEXPIRE', frames, tonumber(ARGV[2]))
redis.call('PEXPIRE', state, tonumber(ARGV[2]))
return {'ok', length}
