-- Part of the table's code: held keys in the form of Redisson's RLock, so that clients of Redisson and of Signalbox
-- exclude and wake each other.
--
-- A lock of Redisson is a hash with one field, `<client>:<thread>`, which counts how often that thread holds the lock.
-- A field of one client excludes all others, regardless of its name. Signalbox writes such a field, named by the
-- request, and next to it the text that a plain string would have. A waiter of RLock subscribes to a channel of the
-- lock. A waiter of RFairLock subscribes to a channel of its own. A list has these waiters in order, and a sorted set
-- has the time until which each of them counts, by the clocks of these clients.
local TEXT, UNLOCKED = 'signalbox', '0'

-- Redisson's name of a key or channel that belongs to a lock. The braces keep them in one slot.
local function companion(what, key)
  return what .. ':' .. (key:find('{', 1, true) and key or '{' .. key .. '}')
end

local function seen(key)
  local text = texts[key]
  if text == nil then
    text = must(try('HGET', key, TEXT)) or call('EXISTS', key) == 1 and FOREIGN
    texts[key] = text
  end
  return text
end
local function left(key) return call('PTTL', key) end
local function put(key, text, lease)
  local id = parseHeld(text)
  if id then
    local session, count = id:match('^(.*)%.(.*)$')
    must(try('HSET', key, TEXT, text, session .. ':' .. (tonumber(count, 36) or count), 1))
  else
    -- A key with several holders has no field of a single holder.
    must(try('HSET', key, TEXT, text))
    for _, field in ipairs(call('HKEYS', key)) do
      if field ~= TEXT then call('HDEL', key, field) end
    end
  end
  call('PEXPIRE', key, lease)
  texts[key] = text
end
local function expire(key, lease) call('PEXPIRE', key, lease) end

-- Frees the key, and wakes the waiters of Redisson as the unlocks of RLock and RFairLock do. If this session may not
-- publish, the key is free nevertheless, and they retry after their own timeout.
local function clear(key)
  call('DEL', key)
  texts[key] = false
  local channel = companion('redisson_lock__channel', key)
  try(PUBLISH, channel, UNLOCKED)
  local waiters = try('LRANGE', companion('redisson_lock_queue', key), 0, 15)
  for _, waiter in ipairs(waiters) do
    try(PUBLISH, channel .. ':' .. waiter, UNLOCKED)
    -- A waiter whose time is over may be dead, so the next one is woken, too. That one removes it from the list.
    local time = try('ZSCORE', companion('redisson_lock_timeout', key), waiter)
    if type(time) ~= 'string' or tonumber(time) > now then break end
  end
end
