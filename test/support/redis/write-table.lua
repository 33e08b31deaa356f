-- Writes a table of locks in the place of another. KEYS: the counter, the queues, the requests, the signs. ARGV: as JSON the
-- time, the records, the entries of queues, and the held keys with their texts and ends.
return function(KEYS, ARGV)
  local VIRTUAL = KEYS[1] .. ':virtual'
  local now, records, entries, held = unpack(cjson.decode(ARGV[1]))
  for _, name in ipairs(redis.call('HKEYS', VIRTUAL)) do redis.call('DEL', name) end
  redis.call('DEL', VIRTUAL, KEYS[1] .. ':published', unpack(KEYS))
  redis.call('SET', KEYS[1], 1000)
  redis.call('HSET', VIRTUAL, 'now', now)
  for _, record in ipairs(records) do redis.call('HSET', KEYS[3], record.id, cmsgpack.pack(record)) end
  for _, entry in ipairs(entries) do redis.call('ZADD', KEYS[2], 0, entry) end
  for _, key in ipairs(held) do
    redis.call('SET', key[1], key[2])
    redis.call('HSET', VIRTUAL, key[1], key[3])
  end
end
