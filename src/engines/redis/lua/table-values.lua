-- Part of the table's code: reads and commits values.

-- The functions that execute operations, by type. Each receives the operation as the client has sent it.
local operations = {}

-- The texts of values: empty for a missing value, and UNREADABLE for one that another program has written. With `all`,
-- an unreadable one raises an error.
local function textsOf(names, all)
  local found = must(try('MGET', unpack(names)))
  for i, name in ipairs(names) do
    local text = found[i]
    -- MGET returns nothing for a key of another type, as for a missing one. GET returns an error.
    if not text then found[i] = try('GET', name) and UNREADABLE or ''
    else
      local digits = text:match('^([1-9]%d*) ')
      if not digits or tonumber(digits) > NEVER then found[i] = UNREADABLE end
    end
    if all and found[i] == UNREADABLE then unreadable(name) end
  end
  return found
end

local function namesOf(places)
  local names = {}
  for i, place in ipairs(places) do names[i] = NAMES[place] end
  return names
end

local function isRecorded(id)
  local name = NAMES[id.key]
  return must(try('ZSCORE', name, id.id), name)
end

local function read(what)
  local values, found = {}, {}
  if what.keys[1] then values = textsOf(namesOf(what.keys)) end
  for i, recorded in ipairs(what.ids) do found[i] = isRecorded(recorded) and 1 or 0 end
  return { values, found }
end

local function version(text) return text == '' and 0 or tonumber(text:match('^%d+')) end

-- The answer to a grant: its number, and the values that the operation reads with it.
local function held(outcome, operation)
  if not operation.read or type(outcome) ~= 'number' then return outcome end
  local done, values = pcall(read, operation.read)
  if done then return { 'held', outcome, values } end
  -- The reply can report only the error, so the grant is removed.
  remove(operation.id, outcome, operation.claims)
  error(values, 0)
end

function operations.read(operation) return { 'read', read(operation.read) } end

function operations.commit(operation)
  local guarded, id, claims, granted = operation.id ~= nil, operation.id, operation.claims, operation.number
  local ids, writes, retention = operation.ids, operation.writes, operation.retention
  local whole = guarded and holds(id, granted, claims)
  if not whole then
    for i, recorded in ipairs(ids) do
      if isRecorded(recorded) then return { 'repeated', i } end
    end
  end
  if guarded and not whole then return { 'lost' } end
  if operation.keys[1] then
    for i, text in ipairs(textsOf(namesOf(operation.keys), true)) do
      if version(text) ~= operation.versions[i] then return { 'conflict', i, text } end
    end
  end
  local versions = {}
  -- Commands that the server may reject come first, so that no commit is applied in part. Subscribers receive no
  -- message before the call is over.
  if writes[1] then raise(0) end
  for _, write in ipairs(writes) do must(try(PUBLISH, NAMES[write.key], '')) end
  for i, recorded in ipairs(ids) do
    local name = NAMES[recorded.key]
    local added = try('ZADD', name, now + retention, recorded.id)
    if type(added) == 'table' then
      for j = 1, i - 1 do call('ZREM', NAMES[ids[j].key], ids[j].id) end
      must(added, name)
    end
    call('ZREMRANGEBYSCORE', name, '-inf', now)
    call('PEXPIRE', name, math.max(retention, call('PTTL', name)))
  end
  for i, write in ipairs(writes) do
    local name, fresh = NAMES[write.key], nextNumber()
    if write.value then
      must(try('SET', name, digits(fresh) .. ' ' .. write.value))
      versions[i] = fresh
    else
      call('DEL', name)
      versions[i] = 0
    end
  end
  if guarded and operation.release then remove(id, granted, claims) end
  return { 'committed', versions }
end
