-- Put in front of a script: a clock that a test sets, and keys that expire by it. What the script publishes is kept in a
-- list. The records and queues never expire, because a script removes them at other times than the lock table does.
local redis = (function(server)
  local VIRTUAL, PUBLISHED = KEYS[1] .. ':virtual', KEYS[1] .. ':published'
  local now = tonumber(server.call('HGET', VIRTUAL, 'now'))
  local ends = server.call('HGETALL', VIRTUAL)
  for i = 1, #ends, 2 do
    if ends[i] ~= 'now' and tonumber(ends[i + 1]) <= now then
      server.call('DEL', ends[i])
      server.call('HDEL', VIRTUAL, ends[i])
    end
  end
  local own = { [KEYS[2]] = true, [KEYS[3]] = true, [KEYS[4]] = true }
  local function run(call, name, key, ...)
    if name == 'TIME' then
      return { string.format('%.0f', math.floor(now / 1000)), string.format('%.0f', now % 1000 * 1000) }
    elseif name == 'PTTL' then
      if own[key] then return 1e15 end
      local at = server.call('HGET', VIRTUAL, key)
      return at and tonumber(at) - now or server.call('EXISTS', key) - 2
    elseif name == 'PEXPIRE' then
      if not own[key] then server.call('HSET', VIRTUAL, key, now + ...) end
      return 1
    elseif name == 'PUBLISH' or name == 'SPUBLISH' then
      server.call('RPUSH', PUBLISHED, key .. ' ' .. ...)
      return 0
    elseif name == 'SET' or name == 'DEL' then
      local words, lease = {}, nil
      for i, word in ipairs({ ... }) do
        if word == 'PX' then lease = tonumber((select(i + 1, ...))) break end
        words[i] = word
      end
      local done = call(name, key, unpack(words))
      if done and lease then server.call('HSET', VIRTUAL, key, now + lease)
      elseif done and name == 'DEL' then server.call('HDEL', VIRTUAL, key) end
      return done
    end
    return call(name, key, ...)
  end
  return {
    call = function(...) return run(server.call, ...) end,
    pcall = function(...) return run(server.pcall, ...) end,
  }
end)(redis)
