-- Part of the table's script: reads operations.
local function readClaims()
  local claims = {}
  for i = 1, amount() do
    local claim = { held = key(), key = word(), mode = word() }
    if claim.mode == 'permits' then claim.permits, claim.max = amount(), amount() end
    claims[i] = claim
  end
  return claims
end

local function readKeys()
  local keys = {}
  for i = 1, amount() do keys[i] = key() end
  return keys
end

local function readIds()
  local ids = {}
  for i = 1, amount() do ids[i] = { key = key(), id = word() } end
  return ids
end

-- Keys with their held keys, as claims.
local function readHeld()
  local claims = {}
  for i = 1, amount() do claims[i] = { held = key(), key = word(), mode = 'exclusive' } end
  return claims
end

local function readDetails()
  local text = word()
  return text == '' and MEMBER or text
end

local operations = {}

-- Reads an operation. Answers with what carries it out.
local function begin()
  local kind = word()
  local task = operations[kind]()
  if spoilt and kind ~= 'read' then return function() unreadable(QUEUES) end end
  return task
end

-- Says of the operation after it that it is a vote.
function operations.ballot()
  local its = { order = amount(), least = amount() }
  local task = begin()
  return function()
    ballot = its
    local done, answer = pcall(task)
    ballot = nil
    if not done then error(answer, 0) end
    return answer
  end
end
