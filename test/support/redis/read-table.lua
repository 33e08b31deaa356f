-- Reads all that is stored of locks. KEYS: the counter, the queues, the requests, the signs, then the held keys.
return function(KEYS, ARGV)
  local VIRTUAL, PUBLISHED = KEYS[1] .. ':virtual', KEYS[1] .. ':published'
  local now = tonumber(redis.call('HGET', VIRTUAL, 'now'))
  local records, held = {}, {}
  local all = redis.call('HGETALL', KEYS[3])
  for i = 2, #all, 2 do
    local record = cmsgpack.unpack(all[i])
    if not record.count then records[#records + 1] = record end
  end
  for i = 5, #KEYS do
    local ends = tonumber(redis.call('HGET', VIRTUAL, KEYS[i]) or -1)
    local kind = redis.call('TYPE', KEYS[i]).ok
    local text = kind == 'hash' and redis.call('HGET', KEYS[i], 'signalbox') or kind == 'string' and redis.call('GET', KEYS[i])
    if text and ends > now then held[#held + 1] = { i - 4, text, ends } end
  end
  local stored = {
    records, redis.call('ZRANGE', KEYS[2], 0, -1), redis.call('ZRANGE', KEYS[4], 0, -1, 'WITHSCORES'), held,
    redis.call('LRANGE', PUBLISHED, 0, -1),
  }
  redis.call('DEL', PUBLISHED)
  return cjson.encode(stored)
end
