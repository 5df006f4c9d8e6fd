-- Purpose: append a writer's frame to the list it opened, once, however often it is sent.
-- KEYS:    1 frames (list)  2 state (hash: generation, length, ended, write, offset)
-- ARGV:    1 ms a live stream is kept (number)  2 generation of the writer (number)
--          3 number of this frame among the writer's, from 1 (number)  4 frame (bytes)
-- Result:  {'ok', offset}; or {'older'}: a newer list has replaced the writer's; {'ended'}; {'gone'}: its list is lost

local frames, state = KEYS[1], KEYS[2]
local generation, write = tonumber(ARGV[2]), tonumber(ARGV[3])

local current = tonumber(redis.call('HGET', state, 'generation')) or 0
if current > generation then return {'older'} end
if current < generation then return {'gone'} end
if redis.call('HGET', state, 'ended') then return {'ended'} end

local length = tonumber(redis.call('HGET', state, 'length')) or 0
if redis.call('LLEN', frames) ~= length then return {'gone'} end

local offset = length
if write <= (tonumber(redis.call('HGET', state, 'write')) or 0) then
  offset = tonumber(redis.call('HGET', state, 'offset'))
else
  redis.call('RPUSH', frames, ARGV[4])
  redis.call('HSET', state, 'length', length + 1, 'write', write, 'offset', offset)
end
redis.call('PEXPIRE', frames, tonumber(ARGV[1]))
redis.call('PEXPIRE', state, tonumber(ARGV[1]))
return {'ok', offset}
