-- Part of the table's code: the records of requests, the queues of keys, and what grants do to their held keys.
local function notify(kind, id)
  local session = id:sub(1, 1) ~= FOREIGN and id:match('^(.*)%.')
  if session == SESSION then hints[#hints + 1] = kind .. ' ' .. id
  elseif session then
    -- A session that may not publish has still done what it would announce. A session that is not notified looks again
    -- by itself.
    try(PUBLISH, CHANNELS .. session, kind .. ' ' .. id)
  end
end

-- Records and queues ------------------------------------------------------------------------------------------------

local function load(id)
  if idle then return nil end
  local request = loaded[id]
  if request == nil then
    local text = must(try('HGET', REQUESTS, id), REQUESTS)
    if text then
      local done
      done, request = pcall(cmsgpack.unpack, text)
      if not done or type(request) ~= 'table' then unreadable(REQUESTS) end
    end
    request = request or false
    loaded[id] = request
  end
  return request or nil
end

local NONE = {}

-- The first entries of a key's queue; all of them where they are fewer than FEW.
local function frontOf(key)
  local front = fronts[key]
  if front then return front end
  if idle then return NONE end
  local start = head(key)
  front = call('ZRANGEBYLEX', QUEUES, '[' .. start, '(' .. start:sub(1, -2) .. ';', 'LIMIT', 0, FEW)
  fronts[key] = front
  return front
end

-- Where an entry stands among the first ones, or nothing.
local function placeIn(front, text)
  for i, other in ipairs(front) do
    if other == text then return i end
  end
  return nil
end

-- A request with these claims, or nothing. For a lone exclusive claim, a short queue tells whether there is a record to
-- read.
local function find(id, claims)
  if claims[1].mode == 'exclusive' and not claims[2] then
    local front, known = frontOf(claims[1].key), false
    for _, text in ipairs(front) do known = known or text:sub(-#id) == id end
    if not known and #front < FEW then return nil end
  end
  return load(id)
end

local function lastSign(id)
  local session = id:match('^(.*)%.')
  local at = signs[session]
  -- Records are read without a queue, too, where another program has deleted it.
  isUsed = true
  if not at then
    at = tonumber(must(try('ZSCORE', SIGNS, session), SIGNS) or -NEVER)
    signs[session] = at
  end
  return at
end

-- When a request expires. A waiter that a sign of its session has named is covered: it lives as long as signs come. Its
-- record says that it never expires, because older versions know no signs, and `alone` is when it expires without them.
local function expiry(request)
  if request.phase ~= 'waiting' or not request.alone then return request.expires end
  return math.max(request.alone, lastSign(request.id) + math.min(request.lease, WAITER_TTL))
end

-- Sets when a request expires if no sign covers it.
local function setExpiry(request, expires)
  request.expires = expires
  request.alone = nil
end

-- Whether a waiter has neither checked in nor been covered for the lifetime of its entry. It blocks no other request, and
-- keeps its place until one goes past it.
local function silent(request)
  if request.phase ~= 'waiting' or now < (request.alone or request.expires) then return false end
  return now >= expiry(request)
end

-- When a request must be dropped as soon as it is met. In an outage no session can send signs: waiters whose sessions
-- try again for as long as this keep their order.
local function overAt(request)
  return expiry(request) + (request.phase == 'waiting' and math.max(request.lease - WAITER_TTL, 0) or 0)
end

-- Groups ------------------------------------------------------------------------------------------------------------

-- The readers, or the permit holders, at the front of a queue are one group, which decisions look at instead of all its
-- members: how many they are, the last entry that may be one of them, the time until which none expires, and what they
-- hold together. It repeats what the queue and the records say. If an older version has changed these, or that time is
-- over, it is made again. It is kept among the records, where older versions take it for one that has expired and has no
-- claims.
local function ungroup(key)
  if groups[key] ~= false then try('HDEL', REQUESTS, '#' .. key) end
  groups[key] = false
end

local function sizeTo(key, last) return call('ZLEXCOUNT', QUEUES, '[' .. head(key), '[' .. last) end

local function group(key)
  local its = groups[key]
  if its == nil and #frontOf(key) < FEW then
    its = false
    groups[key] = its
  elseif its == nil then
    local text, done = try('HGET', REQUESTS, '#' .. key), nil
    if type(text) == 'string' then done, its = pcall(cmsgpack.unpack, text) end
    its = done and type(its) == 'table' and its.last and its or false
    groups[key] = its
    if its and (now >= its.ends or sizeTo(key, its.last) ~= its.count) then ungroup(key) end
  end
  return groups[key] or nil
end

-- All can be decided without a group, so a full memory only removes it. A short queue has none.
local function keepGroup(key, its)
  local kept = its.count >= FEW and try('HSET', REQUESTS, '#' .. key, cmsgpack.pack(its))
  if type(kept) ~= 'number' then return ungroup(key) end
  groups[key] = its
end

-- Whether a request with this claim may be in a group, or begin one.
local function belongs(its, request, claim)
  if request.phase ~= 'held' or claim.mode == 'exclusive' or now >= request.expires then return false end
  return not its or its.claim.mode == claim.mode and its.claim.max == claim.max
end

-- A group, or none, with one member more.
local function joined(its, request, claim, last)
  local permits = (its and its.claim.permits or 0) + (claim.permits or 0)
  return {
    count = (its and its.count or 0) + 1, last = last, ends = math.min(its and its.ends or NEVER, request.expires),
    expires = 0, claims = {},
    claim = { key = claim.key, mode = claim.mode, max = claim.max, permits = permits },
  }
end

local function without(list, place)
  local others = {}
  for i, item in ipairs(list) do
    if i ~= place then others[#others + 1] = item end
  end
  return others
end

-- Puts an entry into the queue of a key.
local function enter(request, claim)
  local key, text = claim.key, entry(claim.key, request)
  local its, front = group(key), frontOf(key)
  must(try('ZADD', QUEUES, 0, text))
  local isLast = not front[1] or front[#front]:sub(1, #text - #request.id) < text:sub(1, #text - #request.id)
  if not isLast then fronts[key] = nil
  elseif #front < FEW then front[#front + 1] = text end
  if not its then return end
  if sizeTo(key, its.last) > its.count then ungroup(key)
  elseif belongs(its, request, claim) and call('ZLEXCOUNT', QUEUES, '(' .. its.last, '(' .. text) == 0 then
    keepGroup(key, joined(its, request, claim, text))
  end
end

-- Takes its entry out again.
local function exit(request, claim)
  local key = claim.key
  local its, front, text = group(key), frontOf(key), entry(key, request)
  call('ZREM', QUEUES, text)
  local place = placeIn(front, text)
  if place then fronts[key] = #front < FEW and without(front, place) or nil end
  if not its or sizeTo(key, its.last) == its.count then return end
  its.count, its.claim.permits = its.count - 1, its.claim.permits - (claim.permits or 0)
  keepGroup(key, its)
end

local function save(request)
  must(try('HSET', REQUESTS, request.id, cmsgpack.pack(request)), REQUESTS)
  loaded[request.id] = request
  for _, claim in ipairs(request.claims) do
    local its = claim.mode ~= 'exclusive' and request.phase == 'held' and group(claim.key)
    if its and request.expires < its.ends then
      its.ends = request.expires
      keepGroup(claim.key, its)
    end
  end
  -- What is kept of a holder that is not ours is known by its held key, too, and may never expire.
  if overAt(request) > latest and not begins(request.id, FOREIGN) then latest = overAt(request) end
end

local function nothing() return nil end

-- The requests of a queue from its front, a group as one: read a few at a time, because most decisions need no more.
-- Votes look at each request.
local function queue(key)
  local chunk, at = frontOf(key), 0
  if not chunk[1] then return nothing end
  local from, last, start = #chunk, #chunk < FEW, head(key)
  local low, high = '[' .. start, '(' .. start:sub(1, -2) .. ';'
  -- Whether a member of the group may follow, and how many have been found.
  local open, added = not ballot and not apart[key], 0
  local its = open and group(key) or nil
  local function close()
    if open and added >= GROUP_MIN then keepGroup(key, its) end
    open = false
  end
  if its then
    local member = load(chunk[1]:sub(#start + 17))
    if member then
      low = '(' .. its.last
      local whole = {
        id = member.id, details = member.details, since = member.since, number = member.number, phase = 'held',
        sequence = member.sequence, expires = its.ends, claims = { its.claim }, isGroup = true,
      }
      at, from, last = -1, 0, false
      chunk = { [0] = whole }
    else
      ungroup(key)
      its = nil
    end
  end
  return function()
    while true do
      at = at + 1
      if at == 0 then return chunk[0], chunk[0].claims[1] end
      if at > #chunk then
        if last then close() return nil end
        chunk = call('ZRANGEBYLEX', QUEUES, low, high, 'LIMIT', from, 32)
        last = #chunk < 32
        if #chunk == 0 then close() return nil end
        from, at = from + #chunk, 1
      end
      local id = chunk[at]:sub(#start + 17)
      local request = load(id)
      if request then
        for _, claim in ipairs(request.claims) do
          if claim.key == key then
            if open and belongs(its, request, claim) then
              its, added = joined(its, request, claim, chunk[at]), added + 1
            else close() end
            return request, claim
          end
        end
      end
      -- If another program deleted the record of a request, its entry remains, and no request would remove it.
      call('ZREM', QUEUES, chunk[at])
      fronts[key] = nil
      from = from - 1
    end
  end
end

local function append(request)
  idle, isUsed = false, true
  save(request)
  for _, claim in ipairs(request.claims) do enter(request, claim) end
end

local function forget(request)
  forgotten = true
  call('HDEL', REQUESTS, request.id)
  for _, claim in ipairs(request.claims) do exit(request, claim) end
  loaded[request.id] = false
end

-- Held keys ---------------------------------------------------------------------------------------------------------

local function take(claim, request)
  if claim.mode == 'exclusive' then
    local text = mark(request.id, request.number) .. digits(request.since) .. ' ' .. request.details
    return put(claim.held, text, request.lease)
  end
  put(claim.held, SHARED, math.max(left(claim.held), request.lease))
end

local function extend(claims, lease)
  for _, claim in ipairs(claims) do
    -- What several hold is there as long as any of them may hold it.
    expire(claim.held, claim.mode == 'exclusive' and lease or math.max(lease, left(claim.held)))
  end
end

-- Whether every held key still says that this grant has it.
local function intact(id, granted, claims)
  for _, claim in ipairs(claims) do
    local text = seen(claim.held)
    if claim.mode == 'exclusive' then
      if not begins(text, mark(id, granted)) then return false end
    elseif text ~= SHARED then return false end
  end
  return true
end

-- Puts a holder that is known by its held key only before all others in the queue, where the waiters find it.
local function meet(claim, text)
  local id, granted, since, details = parseHeld(text)
  local remaining = left(claim.held)
  local expires = remaining < 0 and NEVER or now + remaining
  if not id then
    id, granted, since, details = FOREIGN .. claim.key, 0, now, ''
    -- A key with 0 ms left is there until this millisecond is over, and its client may still do something to it.
    if expires < NEVER then expires = expires + 1 end
  end
  local request = load(id)
  local met = { key = claim.key, held = claim.held, mode = 'exclusive' }
  if request then
    request.expires = expires
    for _, known in ipairs(request.claims) do
      if known.key == claim.key then return save(request) end
    end
    request.claims[#request.claims + 1] = met
    save(request)
    return enter(request, met)
  end
  append({
    id = id, claims = { met }, phase = 'held', expires = expires, lease = math.max(remaining, 0),
    number = tonumber(granted), since = tonumber(since), sequence = FRONT, details = details,
  })
  -- It may hand its grant on among its own callers as long as no other session wants it.
  if not ballot then notify('contended', id) end
end
