-- Purpose: give a place back, by the token that holds it, so that no renewal still under way takes it again.
-- KEYS:    1 held (zset: owner by expiry in ms)  2 tokens (hash: owner to claim token)
--          3 released (zset: owner and token by end in ms)
-- ARGV:    1 offset_ms (number)  2 lease_ms (number)  3 owner (text)  4 token (text)
-- Result:  1 when a place became free, else 0

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) + tonumber(ARGV[1])
local lease = tonumber(ARGV[2])
local owner, token = ARGV[3], ARGV[4]
local held, tokens, released = KEYS[1], KEYS[2], KEYS[3]

local holder = redis.call('HGET', tokens, owner)
if holder and holder ~= token then return 0 end

redis.call('ZREMRANGEBYSCORE', released, '-inf', now)
redis.call('ZADD', released, now + lease, owner .. ' ' .. token)
redis.call('PEXPIRE', released, lease)
redis.call('HDEL', tokens, owner)
return redis.call('ZREM', held, owner)
