-- Purpose: begin a new, empty list of frames under a generation that no other list of this stream has had.
-- KEYS:    1 frames (list)  2 state (hash: generation, length, ended, write, offset)  3 terminal (string)
-- ARGV:    1 offset_ms (number)  2 ms a live stream is kept (number)
--          3 generation of the writer whose list is gone, or 0 to begin anew whatever there is (number)
-- Result:  the new generation, or 0 when that writer's list has been replaced by a newer one

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) + tonumber(ARGV[1])
local frames, state, terminal = KEYS[1], KEYS[2], KEYS[3]
local known = tonumber(ARGV[3])

local current = tonumber(redis.call('HGET', state, 'generation')) or 0
if known > 0 and current > known then return 0 end

local generation = math.max(current + 1, known + 1, now)
redis.call('DEL', frames, state, terminal)
redis.call('HSET', state, 'generation', generation)
redis.call('PEXPIRE', state, tonumber(ARGV[2]))
return generation
