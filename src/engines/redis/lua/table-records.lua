-- Part of the table's code: records, queues, and writes to held keys.
local function notify(kind, id)
  local session = id:sub(1, 1) ~= FOREIGN and id:match('^(.*)%.')
  if session == SESSION then hints[#hints + 1] = kind .. ' ' .. id
  elseif session then
    -- Ignores errors: the operation counts even if this session may not publish, and a session that is not notified
    -- checks in by itself.
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

-- The first entries of a key's queue; all of them if they are fewer than FEW.
local function frontOf(key)
  local front = fronts[key]
  if front then return front end
  if idle then return NONE end
  local start = queuePrefix(key)
  front = call('ZRANGEBYLEX', QUEUES, '[' .. start, '(' .. start:sub(1, -2) .. ';', 'LIMIT', 0, FEW)
  fronts[key] = front
  return front
end

-- The index of an entry among the first ones, or nil.
local function placeIn(front, text)
  for i, other in ipairs(front) do
    if other == text then return i end
  end
  return nil
end

-- The record of a request, or nil. For a single exclusive claim, a short queue shows whether there is a record to read.
local function find(id, claims)
  if idle then return nil end
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
  if not at then
    at = tonumber(must(try('ZSCORE', SIGNS, session), SIGNS) or -NEVER)
    signs[session] = at
  end
  return at
end

-- When a request expires. A waiter that a sign of its session has named is covered: it lives as long as signs come. Its
-- record then has `alone`, the time at which it expires without signs. Its `expires` is NEVER, and not used.
local function expiry(request)
  if request.phase ~= 'waiting' or not request.alone then return request.expires end
  return math.max(request.alone, lastSign(request.id) + math.min(request.lease, WAITER_TTL))
end

-- Sets when a request expires, until a sign covers it.
local function setExpiry(request, expires)
  request.expires = expires
  request.alone = nil
end

-- Whether a waiter has neither checked in nor been covered by a sign within its TTL. It blocks no other request, and
-- keeps its place until a request is granted past it, or until its `dropTime`.
local function silent(request)
  if request.phase ~= 'waiting' or now < (request.alone or request.expires) then return false end
  return now >= expiry(request)
end

-- When a request loses its place, and must be dropped. In an outage no session can send signs. Waiters whose sessions
-- reach the server before this time keep their order.
local function dropTime(request)
  return expiry(request) + (request.phase == 'waiting' and math.max(request.lease - WAITER_TTL, 0) or 0)
end

-- Groups of readers or permit holders --------------------------------------------------------------------------------

-- A group summarizes many readers, or many permit holders, at the front of a queue. Decisions examine it instead of its
-- members. It has their number, the last entry that may be one of them, the time until which none of them expires, and
-- the claim that they have together. After that time, or if the queue has another number of entries up to the last one,
-- the group is dropped, and created again from the records. It is stored among the records. `expires = 0` keeps
-- `inspect` from reporting it as a request. Because it has no claims, `expireUnused` does nothing with it.
local function ungroup(key)
  if groups[key] ~= false then try('HDEL', REQUESTS, '#' .. key) end
  groups[key] = false
end

local function sizeTo(key, last) return call('ZLEXCOUNT', QUEUES, '[' .. queuePrefix(key), '[' .. last) end

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

-- Saves a group, or removes it if it is small or the memory is full. Decisions do not need it.
local function keepGroup(key, its)
  local kept = its.count >= FEW and try('HSET', REQUESTS, '#' .. key, cmsgpack.pack(its))
  if type(kept) ~= 'number' then return ungroup(key) end
  groups[key] = its
end

-- Whether a request with this claim may be in a group, or begin one if there is none.
local function belongs(its, request, claim)
  if request.phase ~= 'held' or claim.mode == 'exclusive' or now >= request.expires then return false end
  return not its or its.claim.mode == claim.mode and its.claim.max == claim.max
end

-- The group, or a new one if there is none, with one more member.
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

-- Adds a request to the queue of a key.
local function enter(request, claim)
  local key, text = claim.key, queueEntry(claim.key, request)
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

-- Removes a request from the queue of a key.
local function exit(request, claim)
  local key = claim.key
  local its, front, text = group(key), frontOf(key), queueEntry(key, request)
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
  -- The record of a foreign holder need not last: its held key shows it, too, and may never expire.
  if dropTime(request) > latest and not begins(request.id, FOREIGN) then latest = dropTime(request) end
end

local function nothing() return nil end

-- Iterates over the requests of a queue from its front. The first item may be a summary of a group (`isGroup`): it has
-- the ID, the number and the details of one member and the claim of all, and expires when the first of them may. Votes,
-- and calls that have ungrouped the key, get each request. Reads a few requests at a time, because most decisions need
-- no more.
local function queue(key)
  local chunk, at = frontOf(key), 0
  if not chunk[1] then return nothing end
  local from, last, start = #chunk, #chunk < FEW, queuePrefix(key)
  local low, high = '[' .. start, '(' .. start:sub(1, -2) .. ';'
  -- Whether a further member of the group may follow, and how many members were added.
  local open, added = not vote and not ungrouped[key], 0
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
  idle = false
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
    local text = heldPrefix(request.id, request.number) .. digits(request.since) .. ' ' .. request.details
    return put(claim.held, text, request.lease)
  end
  put(claim.held, SHARED, math.max(left(claim.held), request.lease))
end

local function extend(claims, lease)
  for _, claim in ipairs(claims) do
    -- A key with several holders lasts until the last of their leases ends.
    expire(claim.held, claim.mode == 'exclusive' and lease or math.max(lease, left(claim.held)))
  end
end

-- Whether all held keys still belong to this grant.
local function intact(id, granted, claims)
  for _, claim in ipairs(claims) do
    local text = seen(claim.held)
    if claim.mode == 'exclusive' then
      if not begins(text, heldPrefix(id, granted)) then return false end
    elseif text ~= SHARED then return false end
  end
  return true
end

-- Records a holder that only its held key shows. It comes ahead of all others in the queue, where waiters find it.
local function recordHolder(claim, text)
  local id, granted, since, details = parseHeld(text)
  local remaining = left(claim.held)
  local expires = remaining < 0 and NEVER or now + remaining
  if not id then
    id, granted, since, details = FOREIGN .. claim.key, 0, now, ''
    -- A key with 0 ms left exists until this millisecond is over, and its client may still change it.
    if expires < NEVER then expires = expires + 1 end
  end
  local request = load(id)
  local heldClaim = { key = claim.key, held = claim.held, mode = 'exclusive' }
  if request then
    request.expires = expires
    for _, known in ipairs(request.claims) do
      if known.key == claim.key then return save(request) end
    end
    request.claims[#request.claims + 1] = heldClaim
    save(request)
    return enter(request, heldClaim)
  end
  append({
    id = id, claims = { heldClaim }, phase = 'held', expires = expires, lease = math.max(remaining, 0),
    number = tonumber(granted), since = tonumber(since), sequence = FRONT, details = details,
  })
  -- Until it is notified, its box may pass the grant on among its own callers without asking.
  if not vote then notify('contended', id) end
end
