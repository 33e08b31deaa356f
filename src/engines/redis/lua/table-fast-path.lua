-- Part of the table's script: exclusive locks of one key as plain strings, that have no waiters or go from one waiter
-- to the next. It does what the table would do, for half of the server's time or less, with waiters as without: Redis
-- compiles a script once but creates the functions in it again for every call, and the table looks at more than such
-- operations need. So there are no functions up to here. What this can't do, or what fails here, is left to the table,
-- with nothing done.
while position <= LAST and not spoilt do
  local from, least = position, nil
  local kind = WORDS[from]
  if kind == 'ballot' then
    least = tonumber(WORDS[from + 2])
    from = from + 3
    kind = WORDS[from]
    if kind ~= 'enqueue' and kind ~= 'release' then break end
  end
  -- How many words come after the claim.
  local more
  if kind == 'enqueue' then more = 4
  elseif kind == 'release' then more = 1
  elseif kind == 'renew' then more = 2
  elseif kind == 'checkIn' then more = 3
  elseif kind == 'extendOrYield' then more = 5
  else break end
  if WORDS[from + 2] ~= 1 or WORDS[from + 4] ~= 'exclusive' then break end
  local rest = from + 5
  local after = rest + more
  -- What is to be read with a grant, the table reads.
  if (kind == 'enqueue' or kind == 'checkIn') and WORDS[after - 1] then break end
  local held, id, lock = KEYS[named + 1], WORDS[from + 1], WORDS[from + 3]
  -- The number of its grant, and the arguments of the next: lease, life, details.
  local granted = WORDS[rest]
  local terms = kind == 'extendOrYield' and rest + 2 or rest
  local lease, details = WORDS[terms], WORDS[terms + 2]
  if details == '' then details = MEMBER end

  -- The first entries of its queue, if there is one.
  local head, entries
  if not idle then
    head = #lock .. ':' .. lock .. ':'
    entries = call('ZRANGEBYLEX', QUEUES, '[' .. head, '(' .. sub(head, 1, -2) .. ';', 'LIMIT', 0, 3)
    if not entries[1] then entries = nil elseif least or kind == 'renew' then break end
  end
  if not entries and kind == 'checkIn' then break end
  local text
  if entries or kind ~= 'enqueue' then
    text = try('GET', held)
    if type(text) == 'table' then break end
    if kind == 'checkIn' then
      if text then break end
    elseif kind ~= 'enqueue' then
      local mark = 'signalbox/1 ' .. id .. ' ' .. granted .. ' '
      if not text or find(text, mark, 1, true) ~= 1 then break end
    end
  end

  -- The first requests of the queue, with what is to be known of them before anything is changed.
  local first, second, life
  local isBusy = false
  if entries then
    local records = {}
    for i, entry in ipairs(entries) do
      local done, record = pcall(cmsgpack.unpack, try('HGET', REQUESTS, sub(entry, #head + 17)))
      if not done or type(record) ~= 'table' then records = nil break end
      local isOver = now >= record.expires
      if record.phase == 'waiting' and record.alone and now >= record.alone then
        local sign = try('ZSCORE', SIGNS, record.id:match('^(.*)%.'))
        isOver = type(sign) ~= 'string' or now >= tonumber(sign) + math.min(record.lease, WAITER_TTL)
      end
      if isOver then records = nil break end
      records[i] = record
    end
    if not records then break end
    first, second = records[1], records[2]
    if first.claims[2] or first.claims[1].mode ~= 'exclusive' then break end
    -- Until when something is kept that is going to be saved.
    local latest = now + CLAIM_WINDOW
    if kind == 'checkIn' then
      if first.id ~= id or first.phase ~= 'reserved' then break end
      latest = now + tonumber(lease)
    elseif kind == 'enqueue' then
      if call('HGET', REQUESTS, id) then break end
      if first.phase == 'held' then
        local mark = 'signalbox/1 ' .. first.id .. ' ' .. format('%.0f', first.number) .. ' '
        if not text or find(text, mark, 1, true) ~= 1 then break end
      elseif first.phase ~= 'reserved' or text then break end
    else
      if first.id ~= id or first.phase ~= 'held' or first.number ~= tonumber(granted) then break end
      if not second or second.phase ~= 'waiting' then break end
      if second.claims[2] or second.claims[1].mode ~= 'exclusive' then break end
    end
    if kind == 'enqueue' or kind == 'extendOrYield' then
      life = tonumber(WORDS[terms + 1])
      isBusy = life == 0
      if isBusy and kind == 'extendOrYield' then break end
      latest = math.max(latest, now + life + math.max(tonumber(lease) - WAITER_TTL, 0))
    end
    if not isBusy and now + call('PTTL', REQUESTS) < latest then break end
  end

  if kind == 'renew' then
    call('PEXPIRE', held, WORDS[rest + 1])
    answers[#answers + 1] = 1
  elseif kind == 'release' and not entries then
    call('DEL', held)
    answers[#answers + 1] = 1
  elseif isBusy then answers[#answers + 1] = { 'busy' }
  else
    local digits
    if kind ~= 'release' then
      if number then number = math.max(number + 1, least or micros)
      else
        local text = try('SET', NUMBERS, least and format('%.0f', least) or stamp, 'GET')
        if type(text) == 'table' then break end
        local counted = tonumber(text or 0)
        if not counted or not (counted >= 0 and counted < NEVER) then
          call('SET', NUMBERS, text)
          break
        end
        written = least or micros
        number = math.max(written, counted + 1)
      end
      digits = number == micros and stamp or format('%.0f', number)
    end
    if kind == 'checkIn' then
      local text = 'signalbox/1 ' .. id .. ' ' .. digits .. ' ' .. format('%.0f', first.since) .. ' ' .. first.details
      if try('SET', held, text, 'PX', lease).err then break end
      first.lease = tonumber(lease)
      first.phase, first.number, first.expires = 'held', number, now + first.lease
      if type(try('HSET', REQUESTS, id, cmsgpack.pack(first))) == 'table' then
        call('DEL', held)
        break
      end
      answers[#answers + 1] = number
    elseif not entries then
      local kept = kind == 'extendOrYield'
      -- In whole milliseconds since when, and the details; an extended grant keeps them.
      local rest = kept and sub(text, #id + #granted + 14) or ' ' .. sub(stamp, 1, -4) .. ' ' .. details
      local text = 'signalbox/1 ' .. id .. ' ' .. digits .. rest
      local done = try('SET', held, text, kept and 'XX' or 'NX', 'PX', lease)
      if not done or done.err then break end
      answers[#answers + 1] = kept and { 'kept', number, 1 } or number
    else
      local waiter, entry
      if kind ~= 'release' then
        waiter = {
          id = kind == 'extendOrYield' and WORDS[rest + 1] or id, lease = tonumber(lease), details = details,
          claims = { { held = held, key = lock, mode = 'exclusive' } }, since = now, phase = 'waiting', number = 0,
          sequence = format('%016.0f', number), expires = now + life,
        }
        entry = head .. waiter.sequence .. waiter.id
        if type(try('ZADD', QUEUES, 0, entry)) == 'table' then break end
      end
      local done
      if kind == 'enqueue' then done = try('HSET', REQUESTS, waiter.id, cmsgpack.pack(waiter))
      else
        second.phase, second.expires, second.alone = 'reserved', now + CLAIM_WINDOW, nil
        if waiter then
          done = try('HSET', REQUESTS, second.id, cmsgpack.pack(second), waiter.id, cmsgpack.pack(waiter))
        else done = try('HSET', REQUESTS, second.id, cmsgpack.pack(second)) end
      end
      if type(done) == 'table' then
        if waiter then call('ZREM', QUEUES, entry) end
        break
      end
      if kind ~= 'enqueue' then
        call('HDEL', REQUESTS, id)
        call('ZREM', QUEUES, entries[1])
        call('DEL', held)
        local session, wake = second.id:match('^(.*)%.'), 'wake ' .. second.id
        if session == SESSION then hints[#hints + 1] = wake
        else
          try(PUBLISH, CHANNELS .. session, wake)
          hints[#hints + 1] = 'reserved ' .. lock
        end
      end
      if waiter then
        local before = call('ZLEXCOUNT', QUEUES, '[' .. head, '(' .. entry)
        local ahead = kind == 'extendOrYield' and second or first
        local again = before == 1 and math.ceil(math.max(0, ahead.expires - now)) or -1
        local status = { 'queued', before, again }
        if kind == 'enqueue' and first.phase == 'held' then
          status[4], status[5], status[6] = first.id, first.details, now - first.since
        end
        answers[#answers + 1] = status
      else answers[#answers + 1] = 1 end
    end
  end
  position, named = after, named + 1
end
if position > LAST then
  if number ~= written then call('SET', NUMBERS, format('%.0f', number)) end
  if not answers[2] and not hints[1] and type(answers[1]) == 'number' then return answers[1] end
  answers[#answers + 1] = hints
  return answers
end
