-- Part of the table's code: sweeps, and operations for operators.

-- Takes a request away from its session. If the number is not 0, its grant must have that number.
function operations.take(operation)
  local id, claims, granted = operation.id, operation.claims, operation.number
  if granted > 0 and not holds(id, granted, claims) then return 0 end
  remove(id, granted > 0 and granted or nil, claims)
  notify('lost', id)
  return 1
end

function operations.sweepExpired(operation)
  sweep(operation.claims)
  return 0
end

function operations.inspect()
  local reports = {}
  local all = must(try('HGETALL', REQUESTS), REQUESTS)
  for i = 2, #all, 2 do
    local request = cmsgpack.unpack(all[i])
    local expires = expiry(request)
    if now < expires then
      for _, claim in ipairs(request.claims) do
        reports[#reports + 1] = {
          claim.key, request.id, request.details, claim.mode, claim.permits or 0, claim.max or 0, request.phase,
          digits(request.number), now - request.since, digits(expires - now), request.sequence,
        }
      end
    end
  end
  return { 'reports', reports }
end
