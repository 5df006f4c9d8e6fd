-- Purpose: read frames together with the generation they belong to, so that no reset can fall in between.
-- KEYS:    1 frames (list)  2 state (hash: generation, length, ended, write, offset)  3 terminal (string)
-- ARGV:    1 generation the reader has been reading (number)  2 offset it goes on from (number)
--          3 most frames to return (number)
-- Result:  {generation or 0, offset of the first frame returned, length of the list, terminal reference or false, frames};
--          from offset 0 where the generation is another one or the list is shorter than the reader says

local frames, state, terminal = KEYS[1], KEYS[2], KEYS[3]
local from = tonumber(ARGV[2])

local generation = tonumber(redis.call('HGET', state, 'generation')) or 0
local length = tonumber(redis.call('HGET', state, 'length')) or 0
if generation ~= tonumber(ARGV[1]) or from > length then from = 0 end

local page = redis.call('LRANGE', frames, from, from + tonumber(ARGV[3]) - 1)
return {generation, from, length, redis.call('GET', terminal), page}
