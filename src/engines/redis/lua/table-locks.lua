-- Part of the table's code: what sessions do with their requests and grants.
-- A grant that is known by its held keys only: its number, since when, details.
local function lightGrant(id, claims)
  local text = seen(claims[1].held)
  if claims[1].mode ~= 'exclusive' or not begins(text, mark(id)) then return nil end
  local _, granted, since, details = parseHeld(text)
  granted = tonumber(granted)
  if not intact(id, granted, claims) then return nil end
  return granted, tonumber(since), details
end

-- Asks the holders of what a vote waits for to yield, where these may have a later place; only they know whether they
-- can.
local function askToYield(claims)
  for _, claim in ipairs(claims) do
    for other in queue(claim.key) do
      if other.phase ~= 'held' then break end
      if other.number > ballot.order then notify('contended', other.id) end
    end
  end
end

-- Whether a request with an earlier place than this vote waits.
local function preceded(id, claims)
  for _, claim in ipairs(claims) do
    for other in queue(claim.key) do
      if other.phase ~= 'held' and not silent(other) then
        if other.sequence .. other.id < place(ballot.order) .. id then return true end
        break
      end
    end
  end
  return false
end

-- Takes a vote back that was given too early: from now on the request stands in the queue, at its place.
local function yield(request, claims, life)
  forget(request)
  giveBack({ id = request.id, number = request.number, claims = claims }, true)
  request.claims, request.phase, request.number = claims, 'waiting', 0
  request.sequence = place(ballot.order)
  setExpiry(request, now + life)
  append(request)
  serveAll(claims)
end

-- Whether no request is in a queue of these keys, and none is held.
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
  if known then return standing(known) end
  if not ballot and areFree(claims) then
    request.since = now
    return hold(request, claims, false)
  end
  if ballot then request.sequence = place(ballot.order) end
  local out, kept = false, {}
  for i, claim in ipairs(claims) do
    serve(claim.key)
    local text = look(claim)
    if text then
      out, kept[i] = true, text
      if begins(text, mark(id)) then return lightGrant(id, claims) or { 'gone' } end
    end
    if claim.mode == 'permits' then
      for _, other in queue(claim.key) do
        if other.mode == 'permits' and other.max ~= claim.max then return { 'mismatch', claim.key, other.max } end
      end
    end
  end
  if not out then
    for _, claim in ipairs(claims) do
      if blocked(claim, ballot and request) then out = true break end
    end
  end
  if out and life == 0 then return { 'busy' } end
  -- Read before anything is written, because it may be refused.
  raise(0)
  request.since = now
  if not out then
    goPast(claims, ballot and request)
    if ballot then request.sequence = FRONT end
    return hold(request, claims, false)
  end
  for i, text in pairs(kept) do meet(claims[i], text) end
  if ballot then raise(ballot.order) else request.sequence = place(nextNumber()) end
  request.phase, request.number = 'waiting', 0
  request.expires = now + life
  append(request)
  if ballot then askToYield(claims) end
  return standing(request)
end

function operations.enqueue(operation)
  return held(enqueue(requestOf(operation), operation.life), operation)
end

-- Grants a request before all that waits for its keys, and takes them from their holders. Of a grant that is known by
-- its held keys only, this frees those that it meets: the others are freed by its box, or end with its lease.
local function steal(request)
  local id, claims = request.id, request.claims
  local known = find(id, claims)
  if known then return known.number end
  -- Before anything is written, because it may be refused.
  raise(0)
  local taken, reserved, met = {}, {}, {}
  for _, claim in ipairs(claims) do
    serve(claim.key)
    local text = look(claim, true)
    if text then
      if begins(text, mark(id)) then return lightGrant(id, claims) or { 'gone' } end
      meet(claim, text)
    end
    for other in queue(claim.key) do
      local others = other.phase == 'held' and taken or other.phase == 'reserved' and reserved
      if others and not met[other.id] then others[#others + 1] = other end
      met[other.id] = true
    end
  end
  for _, other in ipairs(taken) do
    forget(other)
    giveBack(other, true)
    notify('lost', other.id)
  end
  -- What is still held has a holder that is not ours.
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
  -- Recorded, because those that wait have to find it before them.
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
    local granted, since, details = lightGrant(id, claims)
    if not granted then return { 'gone' } end
    if ballot then
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
    if ballot then
      request.lease = lease
      if not preceded(id, claims) then return held(hold(request, claims, true), operation) end
      yield(request, claims, life)
      return standing(request)
    end
    extend(claims, lease)
  end
  request.lease = lease
  if request.phase == 'waiting' and request.alone then request.alone = now + life
  else setExpiry(request, now + (request.phase == 'held' and lease or life)) end
  -- What is reserved is saved with the outcome of it.
  if request.phase ~= 'reserved' then save(request) end
  if request.phase == 'held' then return held(request.number, operation) end
  -- Served before the keys are looked at: a request that is dropped as expired may hold its key for a moment yet.
  if request.phase == 'waiting' then serveAll(claims) end
  local out = false
  for _, claim in ipairs(claims) do
    local text = look(claim)
    if text then
      out = true
      meet(claim, text)
    end
  end
  -- Another request may have met a holder that came in from outside since this one was reserved.
  if not out and request.phase == 'reserved' then
    for _, claim in ipairs(claims) do
      if blocked(claim, request) then out = true break end
    end
  end
  if out then
    request.phase = 'waiting'
    save(request)
  end
  if request.phase == 'reserved' then return held(hold(request, claims, true), operation) end
  return standing(request)
end

function operations.alive(operation) return sign(operation.claims, operation.requests) end

function operations.cancel(operation)
  remove(operation.id, nil, operation.claims)
  forgetForeign(operation.claims)
  return 0
end

-- Raises the number of a vote to the one that its grant has got from the others.
local function renumber(id, claims)
  raise(ballot.least)
  for _, claim in ipairs(claims) do
    if claim.mode == 'exclusive' then
      local _, _, since, text = parseHeld(seen(claim.held))
      put(claim.held, mark(id, ballot.least) .. since .. ' ' .. text, math.max(left(claim.held), 1))
    end
  end
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
  if ballot then renumber(id, claims) end
  extend(claims, lease)
  if request then
    if ballot then request.number = ballot.least end
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
    if known then return standing(known) end
    return lightGrant(following, claims) or { 'gone' }
  end
  local awaited, alone = false, not ballot
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
      -- The requests that met it are gone. From now on its held keys say everything about it again.
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
  -- Where it was: without a record, it was alone.
  request.sequence, request.claims = request.sequence or FRONT, claims
  for _, claim in ipairs(claims) do
    claim.mode = 'shared'
    put(claim.held, SHARED, math.max(request.expires - now, left(claim.held)))
  end
  append(request)
  serveAll(claims)
  return 1
end
