-- Held keys as plain strings with an expiry, which every client of Redis understands. Part of the table's script.
-- The text of a held key, or false.
local function seen(key) return must(try('GET', key)) end
-- Milliseconds until the key expires; negative where it does not or is not there.
local function left(key) return call('PTTL', key) end
local function put(key, text, lease) must(try('SET', key, text, 'PX', lease)) end
local function expire(key, lease) call('PEXPIRE', key, lease) end
local function clear(key) call('DEL', key) end
