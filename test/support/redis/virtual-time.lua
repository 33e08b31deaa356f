-- Put in front of code: a clock that a test sets, and keys that expire by it. What the code publishes is kept in a list.
-- The records and queues never expire, because the code removes them at other times than the lock table does.
-- The functions of the server are there at a call, and not when a library is loaded.
local function server() return redis end
local VIRTUAL, PUBLISHED, now, own

local function run(how, name, key, ...)
  local call = server()[how]
  if name == 'TIME' then
    return { string.format('%.0f', math.floor(now / 1000)), string.format('%.0f', now % 1000 * 1000) }
  elseif name == 'PTTL' then
    if own[key] then return 1e15 end
    local at = server().call('HGET', VIRTUAL, key)
    return at and tonumber(at) - now or server().call('EXISTS', key) - 2
  elseif name == 'PEXPIRE' then
    if not own[key] then server().call('HSET', VIRTUAL, key, now + ...) end
    return 1
  elseif name == 'PUBLISH' or name == 'SPUBLISH' then
    server().call('RPUSH', PUBLISHED, key .. ' ' .. ...)
    return 0
  elseif name == 'SET' or name == 'DEL' then
    local words, lease = {}, nil
    for i, word in ipairs({ ... }) do
      if word == 'PX' then lease = tonumber((select(i + 1, ...))) break end
      words[i] = word
    end
    local done = call(name, key, unpack(words))
    if done and lease then server().call('HSET', VIRTUAL, key, now + lease)
    elseif done and name == 'DEL' then server().call('HDEL', VIRTUAL, key) end
    return done
  end
  return call(name, key, ...)
end

-- Has code run at the time that a test has set.
local function timed(main)
  return function(keys, words)
    VIRTUAL, PUBLISHED = keys[1] .. ':virtual', keys[1] .. ':published'
    own = { [keys[2]] = true, [keys[3]] = true, [keys[4]] = true }
    now = tonumber(server().call('HGET', VIRTUAL, 'now'))
    local ends = server().call('HGETALL', VIRTUAL)
    for i = 1, #ends, 2 do
      if ends[i] ~= 'now' and tonumber(ends[i + 1]) <= now then
        server().call('DEL', ends[i])
        server().call('HDEL', VIRTUAL, ends[i])
      end
    end
    return main(keys, words)
  end
end

local redis = {
  call = function(...) return run('call', ...) end,
  pcall = function(...) return run('pcall', ...) end,
}
