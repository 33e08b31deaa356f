-- Part of the table's code: which requests are granted, reserved, dropped and removed.
local function admits(ahead, claim)
  local first = ahead.first
  if not first then return true end
  if claim.mode == 'permits' and first.mode == 'permits' then return ahead.permits + claim.permits <= claim.max end
  return claim.mode == 'shared' and first.mode == 'shared'
end

local function add(ahead, claim)
  if not ahead.first then ahead.first = claim
  elseif ahead.first.mode ~= claim.mode then ahead.first = { mode = 'exclusive' } end
  if claim.mode == 'permits' then ahead.permits = ahead.permits + claim.permits end
end

-- Whether a claim must wait for a request ahead of this one; without a request, for any in the queue. A group in the
-- queue adds the permits of all its members.
local function blocked(claim, request)
  local ahead = { permits = 0 }
  for other, its in queue(claim.key) do
    -- Compares places, because a vote is examined before it is in the queue.
    if request and other.sequence .. other.id >= request.sequence .. request.id then return false end
    if not silent(other) then
      add(ahead, its)
      if not admits(ahead, claim) then return true end
    end
  end
  return false
end

-- The first silent waiter ahead of a request, or in the queues if there is no request.
local function firstSilent(claims, request)
  for _, claim in ipairs(claims) do
    for other in queue(claim.key) do
      if request and other.sequence .. other.id >= request.sequence .. request.id then break end
      if silent(other) then return other end
    end
  end
  return nil
end

-- Deletes the held keys that still belong to a grant, and returns whether there were any. A group in the queue counts
-- as another holder, as each of its members would.
local function clearHeld(grant, recorded)
  local freed = false
  for _, claim in ipairs(grant.claims) do
    local text = seen(claim.held)
    local its = text == SHARED and recorded
    if claim.mode == 'exclusive' then its = begins(text, heldPrefix(grant.id, grant.number))
    elseif its then
      for other, other_claim in queue(claim.key) do
        if other.phase == 'held' and other_claim.mode ~= 'exclusive' then its = false break end
      end
    end
    if its then
      clear(claim.held)
      freed = true
    end
  end
  return freed
end

-- Drops a request without serving its keys. Its held keys have expired with it, or already belong to another grant.
local function dropOne(request)
  forget(request)
  notify('lost', request.id)
end

-- Reserves the key for all waiters that can be granted. Returns early with a request that must be dropped first. A
-- group in the queue is neither expired nor silent.
local function serveOne(key)
  local ahead, passed = { permits = 0 }, nil
  for request, claim in queue(key) do
    if now >= dropTime(request) then return request end
    if silent(request) then passed = passed or request
    else
      if not admits(ahead, claim) then return nil end
      if request.phase == 'waiting' then
        local free = true
        for _, other in ipairs(request.claims) do
          if other.key ~= key and blocked(other, request) then free = false break end
        end
        if free then
          passed = passed or request.claims[2] and firstSilent(request.claims, request)
          if passed then return passed end
          request.phase = 'reserved'
          setExpiry(request, now + CLAIM_WINDOW)
          save(request)
          notify('wake', request.id)
          if not begins(request.id, SESSION .. '.') then hints[#hints + 1] = 'reserved ' .. key end
        end
      end
      add(ahead, claim)
    end
  end
  return nil
end

local function serve(key)
  if not frontOf(key)[1] then return end
  -- No recursion, because thousands of requests of a dead process expire together.
  local left = { key }
  while #left > 0 do
    local at = left[#left]
    local expired = serveOne(at)
    if expired then
      dropOne(expired)
      for i = #expired.claims, 1, -1 do
        local other = expired.claims[i].key
        if other ~= at then left[#left + 1] = other end
      end
    else left[#left] = nil end
  end
end

local function drop(request)
  dropOne(request)
  for _, claim in ipairs(request.claims) do serve(claim.key) end
end

-- Drops the silent waiters ahead of a request, or in the queues if there is no request. A waiter that came back would
-- not know of a grant past it.
local function dropSilent(claims, request)
  if idle then return end
  local passed = firstSilent(claims, request)
  while passed do
    drop(passed)
    passed = firstSilent(claims, request)
  end
end

local function serveAll(claims)
  if idle then return end
  for _, claim in ipairs(claims) do serve(claim.key) end
end

-- Compares the holders in the queue with the held key, which others may have set, deleted or let expire. Returns the
-- text of the key if its holder is not in the queue.
-- @param each whether to examine all holders one by one, instead of a group, for the rest of this call.
local look
function look(claim, each)
  if each and not idle then
    ungroup(claim.key)
    ungrouped[claim.key] = true
  end
  local text = seen(claim.held)
  if not idle then
    local stale, holder = {}, nil
    for request, its in queue(claim.key) do
      -- No holder is behind a waiter for an exclusive grant.
      if request.phase == 'waiting' and its.mode == 'exclusive' then break end
      if request.phase == 'held' then
        local same
        if its.mode ~= 'exclusive' then same = text == SHARED
        elseif request.id == FOREIGN .. claim.key then
          same = text and text ~= SHARED and not begins(text, 'signalbox/1 ')
        else same = begins(text, heldPrefix(request.id, request.number)) end
        if not same and request.isGroup then return look(claim, true) end
        -- The other holders have the key, too: holders that had lost it were dropped before this one entered.
        if same then holder = request break end
        -- An expired holder is dropped when its key is served.
        if now < request.expires then stale[#stale + 1] = request end
      end
    end
    for _, request in ipairs(stale) do drop(request) end
    if holder then
      if begins(holder.id, FOREIGN) then recordHolder(claim, text) end
      return nil
    end
  end
  if not text then return nil end
  if text ~= SHARED then return text end
  -- None of its holders is left. The key has outlived them, because one of them had a longer lease before.
  clear(claim.held)
  return nil
end

local function sweep(claims)
  for _, claim in ipairs(claims) do
    look(claim)
    serve(claim.key)
  end
end

-- The answer about a request: its number, or its place and when to check in. If a group holds the key, names the member
-- in its summary as the holder.
local function status(request)
  if request.phase == 'held' then return request.number end
  local again, holder = math.huge, nil
  for _, claim in ipairs(request.claims) do
    local nearest, foreign, first = math.huge, false, true
    for other in queue(claim.key) do
      if other.id == request.id then break end
      if other.phase == 'waiting' then
        if not silent(other) then first = false break end
      else
        nearest = math.min(nearest, other.expires - now)
        if begins(other.id, FOREIGN) then foreign = true
        elseif other.phase == 'held' then holder = holder or other end
      end
    end
    -- A foreign holder notifies no session when it is done, so the first waiter behind it checks in often.
    if foreign and first then
      nearest = math.min(nearest, FOREIGN_LOOK)
      hints[#hints + 1] = 'foreign ' .. request.id
    end
    if first then again = math.min(again, nearest) end
  end
  local key = request.claims[1].key
  local text = queueEntry(key, request)
  local place = placeIn(frontOf(key), text)
  local before = place and place - 1 or call('ZLEXCOUNT', QUEUES, '[' .. queuePrefix(key), '(' .. text)
  if request.phase == 'reserved' then again = 0 end
  -- Behind other waiters, the signs of its session are enough.
  again = again < math.huge and math.max(0, math.ceil(again)) or -1
  if not holder then return { 'queued', before, again } end
  return { 'queued', before, again, holder.id, holder.details, now - holder.since }
end

-- Grants a request with these claims. Its record may have only the claims for which others wait. A request without a
-- record gets one only if others can share its keys.
local function hold(request, claims, recorded)
  request.phase, request.expires, request.number = 'held', now + request.lease, nextNumber()
  local alone = true
  for _, claim in ipairs(claims) do
    take(claim, request)
    if claim.mode ~= 'exclusive' then alone = false end
  end
  if recorded and vote and request.sequence ~= FRONT then
    -- A later vote may have an earlier place, but it must not come ahead of a vote that was given.
    forget(request)
    request.sequence = FRONT
    append(request)
  elseif recorded then save(request)
  elseif not alone then
    request.sequence = request.sequence or place(request.number)
    append(request)
  end
  return request.number
end

-- Whether the grant with this number is held, and the record of its request if there is one.
local function holds(id, granted, claims)
  local request = find(id, claims)
  if request then
    local isCurrent = request.phase == 'held' and request.number == granted and now < request.expires
    return isCurrent and intact(id, granted, claims), request
  end
  for _, claim in ipairs(claims) do
    if claim.mode ~= 'exclusive' then return false end
  end
  return intact(id, granted, claims)
end

-- The grant with this number, if it is held: its record, or one that is made from the held key and the caller's claims.
local function holding(id, granted, claims)
  local whole, request = holds(id, granted, claims)
  if not whole or request then return whole and request or nil end
  local _, _, since, details = parseHeld(seen(claims[1].held))
  return { id = id, claims = claims, phase = 'held', number = granted, since = tonumber(since), details = details }
end

-- Removes a request in any phase. Without a record, it may be a grant that only its held keys show.
local function remove(id, granted, claims)
  local recorded, freed = find(id, claims), false
  if recorded then forget(recorded) end
  if not recorded or recorded.phase == 'held' then
    freed = clearHeld({ id = id, number = granted, claims = claims }, recorded)
  end
  if recorded or freed then serveAll(claims) end
end

-- A foreign holder needs no record once no request waits behind it.
local function forgetForeign(claims)
  for _, claim in ipairs(claims) do
    local following = queue(claim.key)
    local first = following()
    if first and first.id == FOREIGN .. claim.key and not following() then forget(first) end
  end
end

-- Removes requests whose sessions never come back. The keys expire a second after the last of their requests, so that
-- their expiry is seldom extended. While other requests keep the keys alive, each extension picks some requests at
-- random, and serves the keys of the expired ones.
local function expireUnused()
  if latest == 0 and not forgotten then return end
  local remaining = call('PTTL', REQUESTS)
  if forgotten and remaining == -2 then call('DEL', SIGNS) end
  -- Nothing was saved, the key is gone, or it lives long enough.
  if latest == 0 or remaining == -2 or now + remaining >= latest then return end
  for _, name in ipairs({ REQUESTS, QUEUES }) do call('PEXPIRE', name, latest - now + 1000) end
  local picked = try('HRANDFIELD', REQUESTS, 20, 'WITHVALUES')
  for i = 2, #picked, 2 do
    local done, request = pcall(cmsgpack.unpack, picked[i])
    if done and type(request) == 'table' and now >= expiry(request) then
      serveAll(request.claims)
      forgetForeign(request.claims)
    end
  end
end
