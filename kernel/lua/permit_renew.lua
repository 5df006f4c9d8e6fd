-- Purpose: keep a holder's place for another lease; a place that Redis has lost is entered again, limits or not.
-- KEYS:    1 held (zset: owner by expiry in ms)  2 tokens (hash: owner to claim token)
--          3 released (zset: owner and token by end in ms)
-- ARGV:    1 offset_ms (number)  2 lease_ms (number)  3 owner (text)  4 token (text)
--          5 ms from now after which the lease begins (number)
-- Result:  1, or 0 when another claim has the place or this one has given it back

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) + tonumber(ARGV[1])
local lease = tonumber(ARGV[2])
local owner, token = ARGV[3], ARGV[4]
local held, tokens, released = KEYS[1], KEYS[2], KEYS[3]

local holder = redis.call('HGET', tokens, owner)
if holder and holder ~= token then return 0 end
if redis.call('ZSCORE', released, owner .. ' ' .. token) then return 0 end

local stands = tonumber(redis.call('ZSCORE', held, owner)) or 0
redis.call('ZADD', held, math.max(stands, now + tonumber(ARGV[5]) + lease), owner)
redis.call('HSET', tokens, owner, token)
local last = tonumber(redis.call('ZRANGE', held, -1, -1, 'WITHSCORES')[2])
redis.call('PEXPIRE', held, last - now + lease)
redis.call('PEXPIRE', tokens, last - now + lease)
return 1
