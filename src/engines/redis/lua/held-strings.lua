-- Part of the table's code: held keys as plain strings with an expiry, which every client of Redis understands.

-- The text of a held key, or false.
local function seen(key)
  local text = texts[key]
  if text == nil then
    text = must(try('GET', key))
    texts[key] = text
  end
  return text
end
-- Milliseconds until the key expires; negative if it does not expire or is missing.
local function left(key) return call('PTTL', key) end
local function put(key, text, lease)
  must(try('SET', key, text, 'PX', lease))
  texts[key] = text
end
local function expire(key, lease) call('PEXPIRE', key, lease) end
local function clear(key)
  call('DEL', key)
  texts[key] = false
end
