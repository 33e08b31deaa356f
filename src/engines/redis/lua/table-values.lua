-- Part of the table's script: reads and commits values.
-- Stands for what another program has put in the place of a value.
local UNREADABLE = '?'

-- The texts of values, empty ones of those that are not there. Where all must be readable, one that is not is raised.
local function textsOf(names, all)
  local found = must(try('MGET', unpack(names)))
  for i, name in ipairs(names) do
    local text = found[i]
    -- What is no text is passed over by MGET, and refused by GET.
    if not text then found[i] = try('GET', name) and UNREADABLE or ''
    else
      local digits = text:match('^([1-9]%d*) ')
      if not digits or tonumber(digits) > NEVER then found[i] = UNREADABLE end
    end
    if all and found[i] == UNREADABLE then unreadable(name) end
  end
  return found
end

local function isRecorded(id) return must(try('ZSCORE', id.key, id.id), id.key) end

local function readSet() return { keys = readKeys(), ids = readIds() } end

local function read(what)
  local values, found = {}, {}
  if #what.keys > 0 then values = textsOf(what.keys) end
  for i, recorded in ipairs(what.ids) do found[i] = isRecorded(recorded) and 1 or 0 end
  return { values, found }
end

local function version(text) return text == '' and 0 or tonumber(text:match('^%d+')) end

-- What a grant is answered with: its number, and what was to be read with it.
local function held(outcome, what, id, claims)
  if not what or type(outcome) ~= 'number' then return outcome end
  local done, values = pcall(read, what)
  if done then return { 'held', outcome, values } end
  -- The reply says only that, and not the grant.
  remove(id, outcome, claims)
  error(values, 0)
end

function operations.read()
  local what = readSet()
  return function() return { 'read', read(what) } end
end

function operations.commit()
  local guarded, id, claims, granted = word(), nil, nil, nil
  if guarded then id, claims, granted = word(), readClaims(), amount() end
  local release, retention = word(), amount()
  local names, expect, writes = readKeys(), {}, {}
  for i = 1, #names do expect[i] = amount() end
  for i = 1, amount() do writes[i] = { key = key(), deletes = word(), value = word() } end
  local ids = readIds()
  return function()
    local whole = guarded and holds(id, granted, claims)
    if not whole then
      for i, recorded in ipairs(ids) do
        if isRecorded(recorded) then return { 'repeated', i } end
      end
    end
    if guarded and not whole then return { 'lost' } end
    if #names > 0 then
      for i, text in ipairs(textsOf(names, true)) do
        if version(text) ~= expect[i] then return { 'conflict', i, text } end
      end
    end
    local versions = {}
    -- What may be refused comes first, so that nothing is done by halves. No message is read before the script is over.
    if #writes > 0 then raise(0) end
    for _, write in ipairs(writes) do must(try(PUBLISH, write.key, '')) end
    for i, recorded in ipairs(ids) do
      local added = try('ZADD', recorded.key, now + retention, recorded.id)
      if type(added) == 'table' then
        for j = 1, i - 1 do call('ZREM', ids[j].key, ids[j].id) end
        must(added, recorded.key)
      end
      call('ZREMRANGEBYSCORE', recorded.key, '-inf', now)
      call('PEXPIRE', recorded.key, math.max(retention, call('PTTL', recorded.key)))
    end
    for i, write in ipairs(writes) do
      local fresh = nextNumber()
      if write.deletes then
        call('DEL', write.key)
        versions[i] = 0
      else
        must(try('SET', write.key, digits(fresh) .. ' ' .. write.value))
        versions[i] = fresh
      end
    end
    if guarded and release then remove(id, granted, claims) end
    return { 'committed', versions }
  end
end
