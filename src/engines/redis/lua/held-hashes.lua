-- Held keys in the form of Redisson's RLock, so that its clients and we exclude and wake each other. Part of the
-- table's code.
--
-- A lock there is a hash with one field, `<client>:<thread>`, that counts how often that thread has it; a field of
-- another client keeps all others out, regardless of its name. Ours has one like it, named by the request, and next to
-- it the text that a plain string would have. A waiter there subscribes to a channel of the lock, and each waiter of
-- RFairLock to one of its own; these stand in a list, and a sorted set has the times, by their clocks, until which they
-- count.
local TEXT, UNLOCKED = 'signalbox', '0'

-- Redisson's name for what belongs to a lock; what it does about braces keeps them in one slot.
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
    -- What several hold has no field of one holder.
    must(try('HSET', key, TEXT, text))
    for _, field in ipairs(call('HKEYS', key)) do
      if field ~= TEXT then call('HDEL', key, field) end
    end
  end
  call('PEXPIRE', key, lease)
  texts[key] = text
end
local function expire(key, lease) call('PEXPIRE', key, lease) end

-- Wakes the waiters there, as an unlock of RLock and one of RFairLock do together. Where this session may not publish,
-- the key is free all the same, and they wait until their own time is over.
local function clear(key)
  call('DEL', key)
  texts[key] = false
  local channel = companion('redisson_lock__channel', key)
  try(PUBLISH, channel, UNLOCKED)
  local waiters = try('LRANGE', companion('redisson_lock_queue', key), 0, 15)
  for _, waiter in ipairs(waiters) do
    try(PUBLISH, channel .. ':' .. waiter, UNLOCKED)
    -- One whose time is over may be dead. The waiter after it takes it out of the list.
    local time = try('ZSCORE', companion('redisson_lock_timeout', key), waiter)
    if type(time) ~= 'string' or tonumber(time) > now then break end
  end
end
