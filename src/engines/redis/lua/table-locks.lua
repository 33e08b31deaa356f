-- Part of the table's code: operations of sessions on their requests and grants.

-- A grant without a record, which only its held keys show: its number, the time of its enqueue, and its details. Nil if
-- there is none.
local function unrecordedGrant(id, claims)
  local text = seen(claims[1].held)
  if claims[1].mode ~= 'exclusive' or not begins(text, heldPrefix(id)) then return nil end
  local _, granted, since, details = parseHeld(text)
  granted = tonumber(granted)
  if not intact(id, granted, claims) then return nil end
  return granted, tonumber(since), details
end

-- Whether the queues of these keys are empty, and none of the keys is held.
local function areFree(claims)
  for _, claim in ipairs(claims) do
    if frontOf(claim.key)[1] or seen(claim.held) then return false end
  end
  return true
end

local function requestOf(operation, id)
  return {
    id = id or operation.id, claims = operation.claims, lease = operation.lease, details = operation.details or MEMBER,
  }
end

local function enqueue(request, life)
  local id, claims = request.id, request.claims
  local known = find(id, claims)
  if known then return status(known) end
  if not vote and areFree(claims) then
    request.since = now
    return hold(request, claims, false)
  end
  if vote then request.sequence = place(vote.order) end
  local isBlocked, heldTexts = false, {}
  for i, claim in ipairs(claims) do
    serve(claim.key)
    local text = look(claim)
    if text then
      isBlocked, heldTexts[i] = true, text
      if begins(text, heldPrefix(id)) then return unrecordedGrant(id, claims) or { 'gone' } end
    end
    if claim.mode == 'permits' then
      -- The claim of a group has the `max` of its members.
      for _, other in queue(claim.key) do
        if other.mode == 'permits' and other.max ~= claim.max then return { 'mismatch', claim.key, other.max } end
      end
    end
  end
  if not isBlocked then
    for _, claim in ipairs(claims) do
      if blocked(claim, vote and request) then isBlocked = true break end
    end
  end
  if isBlocked and life == 0 then return { 'busy' } end
  -- Reads the counter before this request writes anything, because the counter may be unreadable.
  raise(0)
  request.since = now
  if not isBlocked then
    dropSilent(claims, vote and request)
    if vote then request.sequence = FRONT end
    return hold(request, claims, false)
  end
  for i, text in pairs(heldTexts) do recordHolder(claims[i], text) end
  if vote then raise(vote.order) else request.sequence = place(nextNumber()) end
  request.phase, request.number = 'waiting', 0
  request.expires = now + life
  append(request)
  if vote then askToYield(claims) end
  return status(request)
end

function operations.enqueue(operation)
  return held(enqueue(requestOf(operation), operation.life), operation)
end

-- Grants a request ahead of all others, and takes its keys from their holders. A holder without a record loses only
-- these keys: its box releases the others, or they expire with its lease.
local function steal(request)
  local id, claims = request.id, request.claims
  local known = find(id, claims)
  if known then return known.number end
  -- Reads the counter before this request writes anything, because the counter may be unreadable.
  raise(0)
  local taken, reserved, visited = {}, {}, {}
  for _, claim in ipairs(claims) do
    serve(claim.key)
    local text = look(claim, true)
    if text then
      if begins(text, heldPrefix(id)) then return unrecordedGrant(id, claims) or { 'gone' } end
      recordHolder(claim, text)
    end
    for other in queue(claim.key) do
      local others = other.phase == 'held' and taken or other.phase == 'reserved' and reserved
      if others and not visited[other.id] then others[#others + 1] = other end
      visited[other.id] = true
    end
  end
  for _, other in ipairs(taken) do
    forget(other)
    clearHeld(other, true)
    notify('lost', other.id)
  end
  -- A key that is still held has a foreign holder.
  for _, claim in ipairs(claims) do
    if seen(claim.held) then clear(claim.held) end
  end
  for _, other in ipairs(reserved) do
    other.phase = 'waiting'
    setExpiry(other, now + math.min(other.lease, WAITER_TTL))
    save(other)
  end
  request.since, request.sequence = now, FRONT
  local granted = hold(request, claims, false)
  -- It gets a record, because waiters must find it ahead of them.
  append(request)
  for _, other in ipairs(taken) do serveAll(other.claims) end
  return granted
end

function operations.steal(operation)
  return steal(requestOf(operation))
end

function operations.checkIn(operation)
  local id, claims, lease, life = operation.id, operation.claims, operation.lease, operation.life
  local request = find(id, claims)
  if not request then
    local granted, since, details = unrecordedGrant(id, claims)
    if not granted then return { 'gone' } end
    if vote then
      return held(hold({ id = id, lease = lease, since = since, details = details }, claims, false), operation)
    end
    extend(claims, lease)
    return held(granted, operation)
  end
  if request.phase == 'held' then
    if now >= request.expires or not intact(id, request.number, claims) then
      drop(request)
      return { 'gone' }
    end
    if vote then
      request.lease = lease
      if not preceded(id, claims) then return held(hold(request, claims, true), operation) end
      yield(request, claims, life)
      return status(request)
    end
    extend(claims, lease)
  end
  request.lease = lease
  if request.phase == 'waiting' and request.alone then request.alone = now + life
  else setExpiry(request, now + (request.phase == 'held' and lease or life)) end
  -- A reserved request is saved below, with its outcome.
  if request.phase ~= 'reserved' then save(request) end
  if request.phase == 'held' then return held(request.number, operation) end
  -- Serves before it reads the held keys: a request that is dropped as expired may hold its key for a moment longer.
  if request.phase == 'waiting' then serveAll(claims) end
  local isBlocked = false
  for _, claim in ipairs(claims) do
    local text = look(claim)
    if text then
      isBlocked = true
      recordHolder(claim, text)
    end
  end
  -- Another request may have recorded a foreign holder since this one was reserved.
  if not isBlocked and request.phase == 'reserved' then
    for _, claim in ipairs(claims) do
      if blocked(claim, request) then isBlocked = true break end
    end
  end
  if isBlocked then
    request.phase = 'waiting'
    save(request)
  end
  if request.phase == 'reserved' then return held(hold(request, claims, true), operation) end
  return status(request)
end

function operations.alive(operation) return sign(operation.claims, operation.requests) end

function operations.cancel(operation)
  remove(operation.id, nil, operation.claims)
  forgetForeign(operation.claims)
  return 0
end

function operations.renew(operation)
  local id, claims, granted, lease = operation.id, operation.claims, operation.number, operation.lease
  local whole, request = holds(id, granted, claims)
  if not whole then
    -- A grant no longer blocks waiters once another client has taken one of its keys.
    local isCurrent = request and request.phase == 'held' and request.number == granted and now < request.expires
    if isCurrent then drop(request) end
    return 0
  end
  if vote then renumber(id, claims) end
  extend(claims, lease)
  if request then
    if vote then request.number = vote.least end
    request.lease, request.expires = lease, now + lease
    save(request)
  end
  return 1
end

function operations.release(operation)
  local id, claims, granted = operation.id, operation.claims, operation.number
  local whole, request = holds(id, granted, claims)
  if whole and not request then
    for _, claim in ipairs(claims) do clear(claim.held) end
    serveAll(claims)
    return 1
  end
  if not request or request.phase == 'held' and request.number == granted then remove(id, granted, claims) end
  return whole and 1 or 0
end

function operations.extendOrYield(operation)
  local id, claims, granted = operation.id, operation.claims, operation.number
  local following, lease = operation.next, operation.lease
  local request = holding(id, granted, claims)
  if not request then
    local known = find(following, claims)
    if known then return status(known) end
    return unrecordedGrant(following, claims) or { 'gone' }
  end
  local awaited, alone = false, true
  for _, claim in ipairs(claims) do
    if claim.mode ~= 'exclusive' then alone = false end
    for other in queue(claim.key) do
      if other.id ~= id then alone = false end
      if other.phase == 'waiting' and not silent(other) then awaited = true break end
    end
  end
  if not awaited then
    request.lease = lease
    if alone and request.sequence then
      -- The requests that waited behind it are gone, so its held keys are enough again.
      forget(request)
      request.sequence = nil
    end
    return { 'kept', hold(request, claims, request.sequence ~= nil), alone and 1 or 0 }
  end
  raise(0)
  remove(id, granted, claims)
  return enqueue(requestOf(operation, following), operation.life)
end

function operations.downgrade(operation)
  local id, claims, granted = operation.id, operation.claims, operation.number
  local request = holding(id, granted, claims)
  if not request then return 0 end
  if request.sequence then forget(request)
  else
    local remaining = NEVER
    for _, claim in ipairs(claims) do remaining = math.min(remaining, math.max(left(claim.held), 1)) end
    request.lease, request.expires = remaining, now + remaining
  end
  -- It keeps its place. A grant without a record was alone.
  request.sequence, request.claims = request.sequence or FRONT, claims
  for _, claim in ipairs(claims) do
    claim.mode = 'shared'
    put(claim.held, SHARED, math.max(request.expires - now, left(claim.held)))
  end
  append(request)
  serveAll(claims)
  return 1
end
