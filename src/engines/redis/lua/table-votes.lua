-- Part of the table's code: votes. A request of a quorum asks several servers, and is granted when enough of them have
-- voted for it. Its place in the queues is the same on all servers, so that they agree on the order; each vote has a
-- number of at least `vote.least`, so that all votes of a grant get the same one. In the other files, `vote` is set
-- while an operation is a vote. Then a request enters the queue at its own place, no holder is told that others wait
-- unless it may have a later place, and no readers form a group.

-- Notifies holders that may have a later place than this vote. Their boxes decide whether to give the vote back.
local function askToYield(claims)
  for _, claim in ipairs(claims) do
    for other in queue(claim.key) do
      if other.phase ~= 'held' then break end
      if other.number > vote.order then notify('contended', other.id) end
    end
  end
end

-- Whether a waiting request has an earlier place than this vote.
local function preceded(id, claims)
  for _, claim in ipairs(claims) do
    for other in queue(claim.key) do
      if other.phase ~= 'held' and not silent(other) then
        if other.sequence .. other.id < place(vote.order) .. id then return true end
        break
      end
    end
  end
  return false
end

-- Takes back a vote that was given too early. The request then waits in the queue, at its place.
local function yield(request, claims, life)
  forget(request)
  clearHeld({ id = request.id, number = request.number, claims = claims }, true)
  request.claims, request.phase, request.number = claims, 'waiting', 0
  request.sequence = place(vote.order)
  setExpiry(request, now + life)
  append(request)
  serveAll(claims)
end

-- Raises the number of a vote to the number that its grant has on other servers.
local function renumber(id, claims)
  raise(vote.least)
  for _, claim in ipairs(claims) do
    if claim.mode == 'exclusive' then
      local _, _, since, text = parseHeld(seen(claim.held))
      put(claim.held, heldPrefix(id, vote.least) .. since .. ' ' .. text, math.max(left(claim.held), 1))
    end
  end
end

-- Makes all later numbers greater than that of a grant for which this server has not voted.
function operations.raise(operation)
  raise(operation.least)
  return 0
end
