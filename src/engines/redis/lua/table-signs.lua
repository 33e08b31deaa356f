-- Part of the table's code: signs of life.

-- The record of a request, or nil if it can't be read.
local function readable(id)
  local done, request = pcall(load, id)
  return done and request or nil
end

-- Stores a sign of this session, and covers the waiting ones of these requests.
local function cover(ids)
  must(try('ZADD', SIGNS, now, SESSION), SIGNS)
  call('ZREMRANGEBYSCORE', SIGNS, '-inf', now - SIGN_KEPT)
  signs[SESSION] = now
  for _, id in ipairs(ids) do
    local request = readable(id)
    if request and request.phase == 'waiting' then
      if not request.alone then
        request.alone, request.expires = request.expires, NEVER
        save(request)
      end
      latest = math.max(latest, dropTime(request))
    end
  end
  -- The signs are kept as long as these requests keep their places without another sign.
  call('PEXPIRE', SIGNS, math.max(call('PTTL', SIGNS), latest - now + 1000))
end

-- Returns the time in milliseconds until a holder or a reservation of a key expires, if one of the waiting requests is
-- the first waiter for the key; otherwise infinity. A group counts as a holder that expires with its first member.
local function untilExpiry(key, waiting)
  local ends, nearest, foreign = math.huge, math.huge, false
  for request in queue(key) do
    if request.phase ~= 'waiting' then
      ends = math.min(ends, request.expires - now)
      foreign = foreign or begins(request.id, FOREIGN)
    else
      if waiting[request.id] then nearest = math.min(nearest, ends) end
      -- The first waiter behind a foreign holder has to check in often, and may not know that it is the first.
      if foreign then waiting[request.id] = nil end
      if not silent(request) then break end
    end
  end
  return nearest
end

-- Receives a sign for requests of this session, and serves their keys. Returns the requests that must check in, and the
-- time in milliseconds until a holder or a reservation expires for which one of them is the first waiter. The time is
-- negative if there is none. If a key or a record can't be read, because another program has written to it, only its
-- requests check in. The cost does not depend on the number of other waiters.
local function sign(claims, ids)
  if idle then return { 'signed', -1, ids } end
  cover(ids)
  local unread, waiting, nearest, due = {}, {}, math.huge, {}
  for _, claim in ipairs(claims) do unread[claim.key] = not pcall(sweep, { claim }) end
  for _, id in ipairs(ids) do
    local request = readable(id)
    waiting[id] = request and request.phase == 'waiting' and request or nil
  end
  for _, claim in ipairs(claims) do
    local done, ends = pcall(untilExpiry, claim.key, waiting)
    if done then nearest = math.min(nearest, ends) else unread[claim.key] = true end
  end
  for _, id in ipairs(ids) do
    local request = waiting[id]
    for _, claim in ipairs(request and request.claims or {}) do
      if unread[claim.key] then request = nil end
    end
    if not request then due[#due + 1] = id end
  end
  return { 'signed', nearest < math.huge and math.max(0, math.ceil(nearest)) or -1, due }
end
