-- Part of the limiters' code: reads the arguments of a call, decides about its units, and explains.
local session, number, horizon, wanted, pause, asked, before
-- The names and weights of the tenants that wait in this process, alternating, and for each the number of processes in
-- which it waits; nil without tenants.
local tenants, processes

-- Whether both limits count alike, so that one can begin with the count of the other.
local function countsAlike(one, other)
  if unitOf(one) ~= unitOf(other) then return false end
  if one.kind ~= 'calendar' then return other.kind ~= 'calendar' end
  return other.kind == 'calendar' and one.per == other.per and one.zone == other.zone
end

-- The record from which a new limit copies its count: of those that count alike, the one with the longest memory.
local function sourceFor(record)
  local source, longest = nil, 0
  for _, other in ipairs(state.records) do
    if countsAlike(record, other) and memoryOf(other) > longest then source, longest = other, memoryOf(other) end
  end
  return source
end

-- Records that this session uses a limit.
local function name(record)
  local namers = record.namers
  if not namers then return end
  for _, other in ipairs(namers) do
    if other == session then return end
  end
  if #namers < MAX_NAMERS then namers[#namers + 1] = session else record.namers = nil end
end

-- Removes this session from the users of a limit.
local function withdraw(record)
  for place, other in ipairs(record.namers or {}) do
    if other == session then return table.remove(record.namers, place) end
  end
end

-- Whether all grants that `one` allows are allowed by `other`.
local function implies(one, other)
  if unitOf(one) ~= unitOf(other) then return false end
  if one.limit > other.limit or memoryOf(one) < memoryOf(other) then return false end
  if other.kind == 'sliding' then return one.kind ~= 'calendar' end
  return one.kind == other.kind and (one.kind == 'smooth' or one.per == other.per and one.zone == other.zone)
end

local function begin(record)
  local source = sourceFor(record)
  record.begun, record.namers = max(state.lastAt, now - MIN_STEP), {}
  record.since = source and source.since or record.begun
  if record.kind == 'calendar' then
    record.starts, record.ends, record.used, record.before = NEVER, NEVER, 0, {}
    if source then
      record.starts, record.ends, record.used = source.starts, source.ends, source.used
      for i, earlier in ipairs(source.before) do record.before[i] = { earlier[1], earlier[2], earlier[3] } end
    end
  else
    record.log = source and shifted(source.log, max(source.hold - record.hold, 0)) or emptyLog()
    record.openAt = NEVER
  end
end

-- The limits in force (`live`), those that this caller does not use, and all that are kept. `spare` has the returned
-- permits that other processes may get, with their times. Permits that were reserved for a later instant than `firm`
-- obey all limits. `lead` is the excess of the requested hold over that of the limits, in milliseconds.
local live, unnamed, all, spare, firm, lead

-- Whether another record counts everything that this one counts.
local function isCovered(record, place)
  for _, other in ipairs(live) do
    if countsAlike(record, other) and memoryOf(other) >= memoryOf(record) then return true end
  end
  for i, other in ipairs(unnamed) do
    local more = memoryOf(other) - memoryOf(record)
    if countsAlike(record, other) and (more > 0 or more == 0 and i < place) then return true end
  end
  return false
end

local function refund(n, at, amounts)
  for _, record in ipairs(all) do
    local cost = costOf(record, n, amounts)
    if at > record.since and cost > 0 then
      if unitOf(record) == '' then rules[record.kind].refund(record, cost, at) else settle(record, -cost, at) end
    end
  end
end

local function newest(at)
  for _, record in ipairs(live) do
    if not rules[record.kind].isNewest(record, at) then return false end
  end
  return true
end

local function takeOut(place)
  local n, at = spare[place], spare[place + 1]
  for _ = 1, 3 do table.remove(spare, place) end
  return n, at
end

local function placeOfSpare(n, first)
  local begin = max(state.pausedUntil, now)
  for place = first, #spare, 3 do
    local at = spare[place + 1]
    if spare[place] >= n and at > firm and at - lead >= max(begin, spare[place + 2]) then return place end
  end
  return nil
end

local function earliest(n, ahead, amounts, amountsAhead)
  local at = max(now, state.pausedUntil)
  for _ = 1, MAX_ROUNDS do
    local following = at
    for _, record in ipairs(live) do
      local cost, others = costOf(record, n, amounts), costOf(record, ahead, amountsAhead)
      following = max(following, rules[record.kind].readyAt(record, at, cost, others, lead))
    end
    if following == at then
      for _, record in ipairs(live) do
        if record.limit < costOf(record, n, amounts) then return FOREVER end
      end
      return at
    end
    at = following
  end
  return FOREVER
end

local function room(n, more, at)
  local free = more
  for _, record in ipairs(live) do
    if unitOf(record) ~= '' then -- counts other units
    elseif record.kind == 'smooth' then free = 0
    else free = min(free, record.limit - rules[record.kind].used(record, at) - n) end
  end
  for _, record in ipairs(live) do
    local calls = unitOf(record) == ''
    if calls and not rules[record.kind].allows(record, at, n + free, lead) then return 0 end
  end
  return free
end

-- Records the tenants of the process. Returns the weights of all tenants in relation to those of this process.
local function contendAmongTenants(known)
  local lists, counts = {}, {}
  local function countIn(list)
    for i = 1, #list, 2 do counts[list[i]] = (counts[list[i]] or 0) + 1 end
  end
  local function weightOf(list)
    local sum = 0
    for i = 1, #list, 2 do sum = sum + list[i + 1] / (list[i] == '' and 1 or counts[list[i]]) end
    return sum
  end
  for other, list in pairs(state.tenants or {}) do
    if known[other] and other ~= session then
      lists[other] = list
      countIn(list)
    end
  end
  if tenants then
    countIn(tenants)
    processes = {}
    for i = 1, #tenants, 2 do processes[#processes + 1] = tenants[i] == '' and 1 or counts[tenants[i]] end
  end
  local part = weightOf(tenants or NO_TENANT)
  local sum = part
  for other in pairs(known) do
    if other ~= session then sum = sum + weightOf(lists[other] or NO_TENANT) end
  end
  if known[session] then lists[session] = tenants end
  state.tenants = next(lists) and lists or nil
  return floor(sum / part * PRECISION + 0.5) / PRECISION
end

-- Adds the process to those that wait for a permit, and returns their number.
local function contend()
  local known, count = state.contenders or {}, 0
  for other, seenAt in pairs(known) do
    if now - seenAt > CONTENDS then known[other] = nil else count = count + 1 end
  end
  if count < MAX_CONTENDERS then
    if not known[session] then count = count + 1 end
    known[session] = now
  end
  state.contenders = known
  return (tenants or state.tenants) and contendAmongTenants(known) or count
end

local function decide()
  if state.askedAt - now > MAX_BACKSTEP then
    state.pausedUntil = state.pausedUntil - (state.askedAt - now)
    for _, record in ipairs(state.records) do record.seen = min(record.seen, now) end
    state.spare, state.contenders = {}, nil
  end
  state.askedAt = now

  local named = {}
  live, unnamed, all = {}, {}, {}
  for i = 1, amount() do
    local record = {
      id = word(), kind = word(), limit = amount(), per = amount(), hold = amount(), guard = amount(),
      zone = word(), unit = word(), days = {},
    }
    local days = record.days
    for day = 1, amount() do days[day] = amount() end
    if #days > 0 and (now < days[1] or now >= days[#days]) then error({ days = true }, 0) end
    local known
    for _, other in ipairs(state.records) do
      if other.id == record.id then known = other end
    end
    if known then
      known.days = record.days
      if endsAt(known) < now then known.begun, known.namers = max(state.lastAt, now - MIN_STEP), {} end
    else
      known = record
      begin(known)
    end
    known.seen, named[known] = now, true
    name(known)
    live[i] = known
  end
  local own, fadesAt = #live, FOREVER
  for _, record in ipairs(state.records) do
    if not named[record] then
      unnamed[#unnamed + 1] = record
      if own > 0 then withdraw(record) end
    end
  end
  for _, record in ipairs(unnamed) do
    if endsAt(record) >= now then
      live[#live + 1] = record
      local implied = false
      for i = 1, own do implied = implied or implies(live[i], record) end
      if not implied then fadesAt = min(fadesAt, endsAt(record)) end
    end
  end
  local past = {}
  for i, record in ipairs(live) do all[i] = record end
  for place, record in ipairs(unnamed) do
    if endsAt(record) < now and not isCovered(record, place) and rules[record.kind].forgottenAt(record) > now then
      past[#past + 1], all[#all + 1] = record, record
    end
  end
  for _, record in ipairs(all) do
    local rule = rules[record.kind]
    if rule.forgottenAt(record) > now + 2 * memoryOf(record) + FARTHEST + MAX_BACKSTEP then rule.rebase(record, now) end
  end
  state.records = all

  local unitCount = amount()
  measures = {}
  for i = 1, unitCount do measures[word()] = i end
  local function amounts()
    if unitCount == 0 then return nil end
    local list = {}
    for i = 1, unitCount do list[i] = amount() end
    return list
  end
  local overdrawn, askedAmounts, beforeAmounts = amounts(), amounts(), amounts()

  local hold = FOREVER
  spare, firm = state.spare or {}, NEVER
  state.spare = spare
  for _, record in ipairs(live) do
    firm, hold = max(firm, record.begun or FOREVER), min(hold, record.hold)
  end
  lead = max(wanted - hold, 0)
  while spare[1] and spare[2] < now do refund(takeOut(1)) end

  local returns = amount()
  local repeated = returns > 0 and state.calls[session] and state.calls[session][1] >= number
  for _ = 1, returns do
    local n, at, from, costs = amount(), amount(), amount(), amounts()
    if not repeated then
      if costs then refund(n, at, costs)
      elseif at < now or at <= firm or newest(at) or #spare == 3 * MAX_SPARES then refund(n, at)
      else
        local place = #spare + 1
        while place > 1 and spare[place - 2] > at do place = place - 3 end
        if spare[place - 2] == at and spare[place - 1] == from then spare[place - 3] = spare[place - 3] + n
        else
          table.insert(spare, place, from)
          table.insert(spare, place, at)
          table.insert(spare, place, n)
        end
      end
      while spare[1] and newest(spare[#spare - 1]) do refund(takeOut(#spare - 2)) end
    end
  end
  if returns > 0 then
    state.calls[session] = { number, now }
    for other, its in pairs(state.calls) do
      -- A call repeated that late changes nothing: its returned permits no longer count, or its connection is closed.
      if now - its[2] > 60000 then state.calls[other] = nil end
    end
  end
  if overdrawn then
    for _, record in ipairs(all) do
      local more = costOf(record, 0, overdrawn)
      if more > 0 then settle(record, more, now) end
    end
  end
  if pause == 0 then state.pausedUntil = NEVER
  elseif pause then state.pausedUntil = max(state.pausedUntil, now + pause) end

  local names = amount()
  tenants, processes = names > 0 and {} or nil, nil
  for i = 1, 2 * names, 2 do tenants[i], tenants[i + 1] = word(), amount() end

  local units, beyond, contenders = {}, nil, 0
  for _ = 1, amount() do
    local count, n, more, within, costs = amount(), amount(), amount(), amount(), amounts()
    while count > 0 do
      local place = not beyond and not costs and placeOfSpare(n, 1) or nil
      local at = place and spare[place + 1]
      local from = beyond or place and at - lead or earliest(n, 0, costs)
      if from > now and contenders == 0 then contenders = contend() end
      if from - now > horizon or from > fadesAt then
        beyond = min(from, fadesAt)
        from = beyond
      end
      local each, together = 0, count
      if beyond or from - now > within then at = from
      elseif place then
        each, together = min(spare[place], n + more), 1
        spare[place] = spare[place] - each
        if spare[place] == 0 then takeOut(place) end
      else
        each, together, at = n, 1, from + lead
        if at - lead < from then at = at + abs(at) * 2 ^ -52 end
        if more > 0 then each = n + room(n, more, from)
        elseif count > 1 and not costs then together = 1 + floor(room(n, (count - 1) * n, from) / n) end
        for _, record in ipairs(live) do
          local cost = costOf(record, each * together, costs)
          if cost > 0 then rules[record.kind].take(record, cost, at, lead) end
        end
        for _, record in ipairs(past) do
          local cost = costOf(record, each * together, costs)
          if cost > 0 then rules[record.kind].note(record, cost, at) end
        end
        state.lastAt = max(state.lastAt, at)
      end
      units[#units + 1], units[#units + 2], units[#units + 3] = together, each, format('%.17g', at)
      count = count - together
    end
  end

  local explained = {}
  if asked > 0 then
    local longest, binding = 0, 0
    for i = 1, own do
      local cost, others = costOf(live[i], asked, askedAmounts), costOf(live[i], before, beforeAmounts)
      local wait = rules[live[i].kind].readyAt(live[i], now, cost, others, lead) - now
      if wait > longest then longest, binding = wait, i end
    end
    local left, ready, place = before, nil, not askedAmounts and placeOfSpare(1, 1) or nil
    while place and not ready do
      if spare[place] >= left + asked then ready = spare[place + 1] - lead end
      left, place = max(left - spare[place], 0), placeOfSpare(1, place + 3)
    end
    explained = { format('%.17g', min(ready or earliest(asked, left, askedAmounts, beforeAmounts), fadesAt)), binding }
    for i = 1, own do
      local record = live[i]
      local rule = rules[record.kind]
      explained[#explained + 1] = max(record.limit - rule.used(record, now), 0)
      explained[#explained + 1] = format('%.17g', rule.returnsAt(record, now) - now)
    end
  end

  local rest = state.pausedUntil - now
  for _, record in ipairs(all) do
    rest = max(rest, rules[record.kind].forgottenAt(record) - now, 0)
  end
  save(rest)
  return {
    format('%.17g', now), format('%.17g', hold), format('%.17g', state.pausedUntil), units, explained,
    contenders % 1 == 0 and contenders or format('%.17g', contenders),
    (processes or fadesAt < FOREVER) and format('%.17g', fadesAt) or nil, processes,
  }
end

local function main(keys, words)
  start(keys, words)
  local quick = decideByHead()
  if quick then return quick end
  readState()
  session, number, horizon, wanted = word(), amount(), amount(), amount()
  pause, asked, before = amount(), amount(), amount()
  if not state and WORDS[8] == '0' then return { format('%.17g', now), 'inf', '-inf', {}, {} } end
  state = state or { records = {}, pausedUntil = NEVER, lastAt = NEVER, askedAt = NEVER, calls = {} }
  local done, answer = pcall(decide)
  if done then return answer end
  if type(answer) == 'table' and answer.days then return { format('%.17g', now), 'days' } end
  return type(answer) == 'table' and answer.err and { err = answer.err } or { err = 'ERR ' .. tostring(answer) }
end
