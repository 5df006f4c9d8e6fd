-- Purpose: close a stream: the terminal frame last, the terminal reference for late readers, and the times to keep both.
-- KEYS:    1 frames (list)  2 state (hash: generation, length, ended, write, offset)  3 terminal (string)
-- ARGV:    1 offset_ms (number)  2 ms the frames are kept (number)  3 ms the reference is kept (number)
--          4 generation of the writer, or 0 for one who never opened the stream (number)
--          5 terminal frame (bytes)  6 terminal reference (bytes)
-- Result:  {'ok', offset}; or {'older'}: a newer list has replaced the writer's; {'ended'}: it was closed before

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) + tonumber(ARGV[1])
local frames, state, terminal = KEYS[1], KEYS[2], KEYS[3]
local writer = tonumber(ARGV[4])

local current = tonumber(redis.call('HGET', state, 'generation')) or 0
if writer > 0 and current > writer then return {'older'} end
if redis.call('HGET', state, 'ended') then return {'ended'} end

-- What was there is lost, in whole or in part: the terminal frame stands in a list of its own.
local length = tonumber(redis.call('HGET', state, 'length')) or 0
if current == 0 or redis.call('LLEN', frames) ~= length then
  redis.call('DEL', frames)
  length = 0
  redis.call('HSET', state, 'generation', math.max(current + 1, writer + 1, now))
end

redis.call('RPUSH', frames, ARGV[5])
redis.call('HSET', state, 'length', length + 1, 'ended', 1)
redis.call('SET', terminal, ARGV[6])
redis.call('PEXPIRE', frames, tonumber(ARGV[2]))
redis.call('PEXPIRE', state, tonumber(ARGV[3]))
redis.call('PEXPIRE', terminal, tonumber(ARGV[3]))
return {'ok', length}
