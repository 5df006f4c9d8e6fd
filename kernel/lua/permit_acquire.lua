-- Purpose: check both limits of a resource and take a place and a start together, or say when to ask again.
-- KEYS:    1 held (zset: owner by expiry in ms)          2 tokens (hash: owner to claim token)
--          3 starts (zset: one entry by its time in µs)  4 released (zset: owner and token by end in ms)
--          5 waiting (zset: owner by first refusal in µs)  6 asked (zset: owner by last refusal in ms)
-- ARGV:    1 offset_ms (number)  2 lease_ms (number)  3 owner (text)  4 token (text)
--          5 max_concurrency (number)  6 max_starts_per_second (number)  7 ms until a silent waiter is forgotten (number)
-- Result:  {1, now in ms, 1 for a new start or 0 for a renewal or takeover}, or {0, ms until asking again, waiters ahead}

local time = redis.call('TIME')
local now_us = tonumber(time[1]) * 1000000 + tonumber(time[2]) + tonumber(ARGV[1]) * 1000
local now = math.floor(now_us / 1000)
local lease = tonumber(ARGV[2])
local owner, token = ARGV[3], ARGV[4]
local max_concurrency, rate = tonumber(ARGV[5]), tonumber(ARGV[6])
local patience = tonumber(ARGV[7])
local held, tokens, starts, released, waiting, asked = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]

-- At most `burst` starts in any window of `window` µs, half open.
local second = 1000000
local burst = math.max(1, math.floor(rate))
local window = (rate > 0 and rate < 1) and math.ceil(second / rate) or second

local function clean()
  for _, lapsed in ipairs(redis.call('ZRANGEBYSCORE', held, '-inf', now)) do
    redis.call('HDEL', tokens, lapsed)
    redis.call('ZREM', held, lapsed)
  end
  for _, silent in ipairs(redis.call('ZRANGEBYSCORE', asked, '-inf', now - patience)) do
    redis.call('ZREM', waiting, silent)
    redis.call('ZREM', asked, silent)
  end
  redis.call('ZREMRANGEBYSCORE', starts, '-inf', now_us - window)
  -- A start from the future: the server's clock was set back. It may hold others up for one window, not longer.
  redis.call('ZREMRANGEBYSCORE', starts, '(' .. string.format('%.0f', now_us + window), '+inf')
end

local function hold(expiry)
  redis.call('ZADD', held, expiry, owner)
  redis.call('HSET', tokens, owner, token)
  redis.call('ZREM', released, owner .. ' ' .. token)
  redis.call('ZREM', waiting, owner)
  redis.call('ZREM', asked, owner)
  local last = tonumber(redis.call('ZRANGE', held, -1, -1, 'WITHSCORES')[2])
  redis.call('PEXPIRE', held, last - now + lease)
  redis.call('PEXPIRE', tokens, last - now + lease)
end

local function start()
  redis.call('ZADD', starts, now_us, string.format('%.0f', now_us) .. ' ' .. owner)
  redis.call('PEXPIRE', starts, math.ceil(window / 1000) + 1000)
end

-- Ms until the start rate allows one more start.
local function until_start()
  if rate <= 0 or redis.call('ZCARD', starts) < burst then return 0 end
  local oldest_counted = tonumber(redis.call('ZRANGE', starts, -burst, -burst, 'WITHSCORES')[2])
  return math.ceil((oldest_counted + window - now_us) / 1000)
end

-- A waiter asks the sooner the fewer are ahead of it, and a place that lapses is not waited for beyond its lapse.
local function refuse(full, start_in)
  redis.call('ZADD', waiting, 'NX', now_us, owner)
  redis.call('ZADD', asked, now, owner)
  redis.call('PEXPIRE', waiting, patience)
  redis.call('PEXPIRE', asked, patience)
  local ahead = redis.call('ZRANK', waiting, owner)
  local ask_in = 0
  if full then
    local lapse = tonumber(redis.call('ZRANGE', held, 0, 0, 'WITHSCORES')[2]) - now
    ask_in = math.min(lapse, 500 * (ahead + 1))
  end
  if start_in > 0 then
    ask_in = math.max(ask_in, start_in + math.floor(ahead * window / burst / 1000))
  end
  return {0, ask_in, ahead}
end

clean()

local expiry = tonumber(redis.call('ZSCORE', held, owner))
if expiry then
  local renewed = now + lease
  if redis.call('HGET', tokens, owner) == token then renewed = math.max(renewed, expiry) end
  hold(renewed)
  return {1, now, 0}
end

local full = max_concurrency > 0 and redis.call('ZCARD', held) >= max_concurrency
local start_in = until_start()
if full or start_in > 0 then return refuse(full, start_in) end

hold(now + lease)
start()
return {1, now, 1}
