import { COARSE_GRAINS } from '../../../limits/rules/definition.js'

/**
 * The port of `limits/rules/reserve.ts` and of the rules below it, held equal to them by a differential test. One call decides
 * for one limiter, at one moment of the server's clock.
 *
 * All that is known of a limiter is one string, which expires when it is as good as nothing: MessagePack, and before it
 * either the byte 0 or a head, which alone is read and written while permits come thick. A log of grants is a string
 * within it, pairs of doubles, of which only those are read that a decision needs.
 *
 * What differs from the original: a call says which one of its session it is, so that one that a connection has carried
 * out twice gives back once; the days of time zones are told by the caller; and equal units that follow each other are
 * told, decided and answered together, as far as they have the same instant, which comes to the same.
 *
 * KEYS: the limiter. ARGV: session, number of the call, horizon, hold, pause, permits to explain (0 for none) and permits
 * ahead of them, then counted lists: of limits (id, kind, limit, per, hold, guard, and a counted list of days), of permits
 * to take back (number, instant, from when on), of units (how many equal ones, number, more, within).
 */
export function limitScript({ clock, expiry }: LimitScriptParts = SERVER): string {
  const parts = [BEGIN.replace('CLOCK', clock), HEAD, WHOLE, LIGHT, RULES, DECISION]
  return parts.join('').replaceAll('SAVE', SAVE.trim()).replaceAll('EXPIRY', expiry)
}

/** What of a script a test replaces. */
interface LimitScriptParts {
  /** Sets `now`, milliseconds. */
  readonly clock: string
  /** Gives the milliseconds after which the state expires, from `rest`, those for which it means anything. */
  readonly expiry: string
}

const SERVER: LimitScriptParts = {
  clock: `local time = call('TIME')
local now = time[1] * 1000 + time[2] / 1000`,
  expiry: 'rest',
}

const BEGIN = String.raw`
local call, floor, ceil, abs = redis.call, math.floor, math.ceil, math.abs
local max, min, format = math.max, math.min, string.format
local pack, unpack = struct.pack, struct.unpack
local NEVER, FOREVER = -math.huge, math.huge
local MOST_EXACT, PARTS = ${COARSE_GRAINS.mostExact}, ${COARSE_GRAINS.parts}
local HEAD_FORM, HEAD_LENGTH = '<ddddddddI2', 67
local FARTHEST, UNEASE, LEAST_STEP, MOST_ROUNDS = 10000, 1000, 0.0005, 8
local LINGER, MOST_SEEN, UNNAMED, MOST_FREE = 1000, 10000, 700, 1000
local CONTENDS, MOST_CONTENDERS = 3000, 100
CLOCK
local plain = #ARGV == 22 and ARGV[5] == '0' and ARGV[6] == '0' and ARGV[10] == 'sliding' and ARGV[17] == '0'
`

/**
 * The shortest way: of one sliding limit above MOST_EXACT permits are out so recently that those which are wanted share
 * their entry, as nearly all do where many are given. Nothing but the head is read, and of it time and total are written
 * anew: the entry itself follows with the next write of the whole, which a 2 in front asks for. The whole expires late
 * enough for any grant that can share the entry. A caller that wants a longer hold than the limit's own is so far away
 * that its calls are few: for it the way is never so short.
 *
 * The head: 1 or 2, from when on it holds, total, when the newest entry began, for how long it stands, limit, permits
 * dropped, hold, end of the pause, length of the id, and the id.
 */
const HEAD = String.raw`
if plain and tonumber(ARGV[11]) > MOST_EXACT then
  local head = call('GETRANGE', KEYS[1], 0, HEAD_LENGTH - 1 + #ARGV[9])
  if head:sub(HEAD_LENGTH + 1) == ARGV[9] and (head:sub(1, 1) == '1' or head:sub(1, 1) == '2') then
    local from, total, begunAt, grain, limit, dropped, hold, pausedUntil = unpack(HEAD_FORM, head, 2)
    local each, together = ARGV[20] + ARGV[21], tonumber(ARGV[19])
    total = total + each * together
    if now >= from and now - begunAt <= grain and total - limit <= dropped and tonumber(ARGV[4]) <= hold then
      call('SETRANGE', KEYS[1], 0, '2' .. pack('<dd', now, total))
      local at = format('%.17g', now)
      local units = { together, each, at }
      if ARGV[21] ~= '0' then
        for i = 1, together do units[3 * i - 2], units[3 * i - 1], units[3 * i] = 1, each, at end
      end
      return { at, format('%.17g', hold), format('%.17g', pausedUntil), units, {} }
    end
  end
end
`

/** Reads all that is known. */
const WHOLE = String.raw`
local text, state = call('GET', KEYS[1]), nil
if text and text:sub(1, 1) == '0' then state = cmsgpack.unpack(text:sub(2))
elseif text and not text:find('^[12]') then error('no limit is written like that')
elseif text then
  local at, total, _, _, _, _, _, _, length = unpack(HEAD_FORM, text, 2)
  state = cmsgpack.unpack(text:sub(HEAD_LENGTH + 1 + length))
  if text:sub(1, 1) == '2' then
    local record = state.records[1]
    local log = record.log
    log.entries = log.entries:sub(1, -17) .. pack('<dd', at, total)
    log.total, log.lastAt, record.seen, state.askedAt, state.lastAt = total, at, at, at, max(state.lastAt, at)
  end
end
`

/** Writes all that is known, for as long as it means anything: so far \`rest\` milliseconds. */
const SAVE = String.raw`
local head, first = '0', state.records[1]
if not state.records[2] and first.kind == 'sliding' and first.limit > MOST_EXACT then
  local grain, log = (first.per + first.guard) / PARTS, first.log
  local from = max(state.pausedUntil, state.askedAt, log.lastAt)
  head = '1' .. pack(HEAD_FORM, from, log.total, log.begunAt, grain, first.limit, log.dropped, first.hold,
    state.pausedUntil, #first.id) .. first.id
  rest = rest + grain
end
call('SET', KEYS[1], head .. cmsgpack.pack(state), 'PX', format('%.0f', max(ceil(EXPIRY), 1)))
`

/**
 * The short way: one sliding limit that is known already, and so few of its permits are out that all that are wanted can
 * be had now. Redis makes the functions of a script anew for every call, which costs more than such a decision; so there
 * are none up to here, and all else is left to the rules.
 */
const LIGHT = String.raw`
local record = state and plain and state.records[1]
if record and not state.records[2] and record.id == ARGV[9] and state.askedAt - now <= UNEASE then
  local log, memory, each, together = record.log, record.per + record.guard, ARGV[20] + ARGV[21], tonumber(ARGV[19])
  local total, lead = log.total + each * together, max(ARGV[4] - record.hold, 0)
  local instant = now + lead
  if instant - lead < now then instant = instant + abs(instant) * 2 ^ -52 end
  if now >= state.pausedUntil and instant >= log.lastAt and total - record.limit <= log.dropped then
    local grain = record.limit > MOST_EXACT and memory / PARTS or 0
    local entries = log.entries
    if instant - log.begunAt <= grain or entries ~= '' and instant == unpack('<d', entries, #entries - 15) then
      log.entries = entries:sub(1, -17) .. pack('<dd', instant, total)
    else
      local gone = 0
      while gone < #entries and now - unpack('<d', entries, gone + 1) > memory do gone = gone + 16 end
      if gone > 0 then log.droppedAt, log.dropped = unpack('<dd', entries, gone - 15) end
      log.begunAt, log.entries = instant, entries:sub(gone + 1) .. pack('<dd', instant, total)
    end
    log.total, log.lastAt, record.seen, state.askedAt = total, instant, now, now
    state.lastAt = max(state.lastAt, instant)
    local at, rest = format('%.17g', instant), memory + lead + 1
    SAVE
    local units = { together, each, at }
    if ARGV[21] ~= '0' then
      for i = 1, together do units[3 * i - 2], units[3 * i - 1], units[3 * i] = 1, each, at end
    end
    return { format('%.17g', now), format('%.17g', record.hold), format('%.17g', state.pausedUntil), units, {} }
  end
end
`

const RULES = String.raw`
local position = 0
local function word()
  position = position + 1
  return ARGV[position]
end
local function amount() return tonumber(word()) end

-- Never rounded down.
local function later(time, duration)
  local sum = time + duration
  local added = sum - time
  local lost = time - (sum - added) + (duration - added)
  if lost > 0 then return sum + abs(sum) * 2 ^ -52 end
  return sum
end

-- Logs of grants ----------------------------------------------------------------------------------------------------

local function emptyLog()
  return { entries = '', total = 0, dropped = 0, droppedAt = NEVER, begunAt = NEVER, lastAt = NEVER }
end
local function count(log) return #log.entries / 16 end
local function timeAt(log, entry) return (unpack('<d', log.entries, entry * 16 + 1)) end
local function totalAt(log, entry) return (unpack('<d', log.entries, entry * 16 + 9)) end
local function totalBefore(log, entry) return entry == 0 and log.dropped or totalAt(log, entry - 1) end

-- The first entry for which something is greater than a bound, or at least as great; as many as there are if there is none.
local function firstOf(log, read, bound, orEqual)
  local low, high = 0, count(log)
  while low < high do
    local middle = floor((low + high) / 2)
    local value = read(log, middle)
    if value > bound or orEqual and value == bound then high = middle else low = middle + 1 end
  end
  return low
end

local function timeOfPermit(log, number)
  if number <= log.dropped then return NEVER end
  if totalAt(log, 0) >= number then return timeAt(log, 0) end
  return timeAt(log, firstOf(log, totalAt, number, true))
end

local function addGrant(log, n, time, memory, grain)
  local length = count(log)
  log.total, log.lastAt = log.total + n, time
  if time - log.begunAt <= grain or length > 0 and time == timeAt(log, length - 1) then
    log.entries = log.entries:sub(1, -17) .. pack('<dd', time, log.total)
    return
  end
  log.begunAt = time
  local gone = 0
  while gone < length and now - timeAt(log, gone) > memory do gone = gone + 1 end
  if gone > 0 then log.droppedAt, log.dropped = timeAt(log, gone - 1), totalAt(log, gone - 1) end
  log.entries = log.entries:sub(gone * 16 + 1) .. pack('<dd', time, log.total)
end

-- Entries from one on, with so many permits more.
local function raised(log, first, n)
  local entries = {}
  for i = first, count(log) - 1 do entries[i - first + 1] = pack('<dd', timeAt(log, i), totalAt(log, i) + n) end
  return table.concat(entries)
end

local function insertGrant(log, n, time, memory, grain)
  local length = count(log)
  if length == 0 or time >= log.lastAt then return addGrant(log, n, time, memory, grain) end
  local rounded, added = grain > 0 and ceil(time / grain) * grain or time, ''
  local entry = firstOf(log, timeAt, rounded, true)
  if entry == length then entry = length - 1
  elseif timeAt(log, entry) ~= rounded then added = pack('<dd', rounded, totalBefore(log, entry) + n) end
  log.total = log.total + n
  log.entries = log.entries:sub(1, entry * 16) .. added .. raised(log, entry, n)
end

local function removeGrant(log, n, time)
  local length, entry = count(log), firstOf(log, timeAt, time, true)
  if entry == length or time <= log.droppedAt then return end
  local left = totalAt(log, entry) - n - totalBefore(log, entry)
  if left < 0 then return end
  log.total = log.total - n
  log.entries = log.entries:sub(1, entry * 16) .. raised(log, left == 0 and entry + 1 or entry, -n)
  if left > 0 then return end
  local known = count(log)
  log.begunAt, log.lastAt = NEVER, known > 0 and timeAt(log, known - 1) or log.droppedAt
end

local function isNewest(log, time)
  local length = count(log)
  if length < 2 then return time > log.droppedAt end
  return time > timeAt(log, length - 2)
end

local function collapse(log, time)
  local known = log.total > log.dropped
  log.entries = known and pack('<dd', time, log.total) or ''
  log.begunAt, log.lastAt, log.droppedAt = known and time or NEVER, time, NEVER
end

local function shifted(log, by)
  local entries = {}
  for i = 0, count(log) - 1 do entries[i + 1] = pack('<dd', timeAt(log, i) + by, totalAt(log, i)) end
  return {
    entries = table.concat(entries), total = log.total, dropped = log.dropped, droppedAt = log.droppedAt + by,
    begunAt = log.begunAt + by, lastAt = log.lastAt + by,
  }
end

-- Rules: a record has its definition in it, as kind, limit, per, hold, guard ----------------------------------------

local sliding, smooth, calendar = {}, {}, {}
local rules = { sliding = sliding, smooth = smooth, calendar = calendar }

local function memoryOf(record) return record.per + record.guard end
local function grainOf(record) return record.limit > MOST_EXACT and memoryOf(record) / PARTS or 0 end
local function intervalOf(record, lead) return (memoryOf(record) + lead) / record.limit * (1 + 2 ^ -50) end

function sliding.allows(record, now, n)
  local log = record.log
  local expired = log.total + n - record.limit
  return expired <= log.dropped
    or n <= record.limit and now >= later(timeOfPermit(log, expired), memoryOf(record))
end
function sliding.readyAt(record, now, n, ahead, lead)
  local log, limit, memory, wanted = record.log, record.limit, memoryOf(record), n + ahead
  local windows = max(ceil(wanted / limit) - 1, 0)
  local time = timeOfPermit(log, log.total + wanted - windows * limit - limit)
  return max(now, later(time, memory)) + windows * (memory + lead)
end
function sliding.take(record, n, at) insertGrant(record.log, n, at, memoryOf(record), grainOf(record)) end
function sliding.refund(record, n, at) removeGrant(record.log, n, at) end
function sliding.isNewest(record, at) return isNewest(record.log, at) end
function sliding.used(record, now)
  local log = record.log
  return log.total - totalBefore(log, firstOf(log, timeAt, now - memoryOf(record), false))
end
function sliding.returnsAt(record, now)
  local log = record.log
  local entry = firstOf(log, timeAt, now - memoryOf(record), false)
  if entry == count(log) then return now end
  return max(now, later(timeAt(log, entry), memoryOf(record)))
end
function sliding.forgottenAt(record) return later(record.log.lastAt, memoryOf(record)) end
function sliding.rebase(record, now) collapse(record.log, now) end

function smooth.allows(record, now, n) return now >= record.openAt and sliding.allows(record, now, n) end
function smooth.readyAt(record, now, n, ahead, lead)
  local spaced = max(now, record.openAt) + ahead * intervalOf(record, lead)
  return max(spaced, sliding.readyAt(record, now, n, ahead, lead))
end
function smooth.take(record, n, at, lead)
  record.openAt = max(record.openAt, at - lead) + n * intervalOf(record, lead)
  sliding.take(record, n, at)
end
function smooth.refund(record, n, at)
  sliding.refund(record, n, at)
  local log, newest = record.log, record.limit
  if log.entries ~= '' then newest = log.total - totalBefore(log, count(log) - 1) end
  record.openAt = min(record.openAt, log.lastAt + newest * intervalOf(record, 0))
end
smooth.isNewest, smooth.used = sliding.isNewest, sliding.used
function smooth.returnsAt(record, now) return max(now, record.openAt) end
function smooth.forgottenAt(record) return max(record.openAt, sliding.forgottenAt(record)) end
function smooth.rebase(record, now)
  sliding.rebase(record, now)
  record.openAt = min(record.openAt, now + record.per)
end

-- Start and end of the period with this time in it; of days only those are known that the caller has told.
local function periodAt(record, time)
  local days = record.days
  if #days == 0 then
    local start = floor(time / record.per) * record.per
    return start, start + record.per
  end
  for i = 1, #days - 1 do
    if time >= days[i] and time < days[i + 1] then return days[i], days[i + 1] end
  end
  -- Beyond those it knows none: that is too far ahead, or asked by somebody else long ago.
  local last = days[#days]
  local start = last + floor((time - last) / record.per) * record.per
  return start, start + record.per
end
local function period(record, now)
  if now < record.ends then return record.starts, record.ends end
  return periodAt(record, now)
end

function calendar.allows(record, now, n, lead)
  local guard = record.guard + lead
  if now < record.ends then
    return now >= record.starts and now < record.ends - guard and n <= record.limit - record.used
  end
  local _, ends = periodAt(record, now)
  return n <= record.limit and (guard == 0 or now < ends - guard)
end
function calendar.readyAt(record, now, n, ahead, lead)
  local starts, ends = period(record, now)
  local at, left, wanted = max(now, starts), 0, n + ahead
  if at < ends - record.guard - lead then left = record.limit - (ends == record.ends and record.used or 0) end
  if wanted <= left then return at end
  local periods = ceil((wanted - left) / record.limit)
  -- With days, it is so far ahead that which of them it is does not matter.
  return ends + (periods - 1) * record.per
end
function calendar.take(record, n, at)
  if at >= record.ends then
    local before = record.before
    if record.used > 0 then before[#before + 1] = { record.starts, record.ends, record.used } end
    while before[2] and before[2][2] <= now do table.remove(before, 1) end
    record.starts, record.ends = periodAt(record, at)
    record.used = 0
  end
  record.used = record.used + n
end
function calendar.refund(record, n, at)
  if at >= record.starts and at < record.ends then record.used = max(record.used - n, 0) end
  for _, earlier in ipairs(record.before) do
    if at >= earlier[1] and at < earlier[2] then earlier[3] = max(earlier[3] - n, 0) end
  end
  while record.used == 0 and record.before[1] do
    local last = table.remove(record.before)
    record.starts, record.ends, record.used = last[1], last[2], last[3]
  end
end
function calendar.isNewest(record, at) return at >= record.starts end
function calendar.used(record, now) return now < record.ends and record.used or 0 end
function calendar.returnsAt(record, now) return calendar.used(record, now) > 0 and record.ends or now end
function calendar.forgottenAt(record) return record.ends end
function calendar.rebase(record, now)
  record.starts, record.ends = periodAt(record, now)
  record.used, record.before = max(record.limit, record.used), {}
end
`

const DECISION = String.raw`
local session, number, horizon, wanted = word(), amount(), amount(), amount()
local pause, asked, before = amount(), amount(), amount()
state = state or { records = {}, pausedUntil = NEVER, lastAt = NEVER, askedAt = NEVER, calls = {} }

-- From whose record that of a new limit can begin.
local function sourceFor(record)
  local source, longest = nil, 0
  for _, other in ipairs(state.records) do
    local same = other.kind ~= 'calendar'
    if record.kind == 'calendar' then
      same = not same and other.per == record.per and other.zone == record.zone
    end
    if same and memoryOf(other) > longest then source, longest = other, memoryOf(other) end
  end
  return source
end

-- Whether whatever keeps one limit keeps the other, too.
local function implies(one, other)
  if one.limit > other.limit or memoryOf(one) < memoryOf(other) then return false end
  if other.kind == 'sliding' then return one.kind ~= 'calendar' end
  return one.kind == other.kind and (one.kind == 'smooth' or one.per == other.per and one.zone == other.zone)
end

local function begin(record)
  local source = sourceFor(record)
  record.begun = max(state.lastAt, now - LEAST_STEP)
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

local function decide()
  if state.askedAt - now > UNEASE then
    state.pausedUntil = state.pausedUntil - (state.askedAt - now)
    for _, record in ipairs(state.records) do record.seen = min(record.seen, now) end
    state.spare, state.contenders = {}, nil
  end
  state.askedAt = now

  local live, named = {}, {}
  for i = 1, amount() do
    local record = {
      id = word(), kind = word(), limit = amount(), per = amount(), hold = amount(), guard = amount(), zone = word(), days = {},
    }
    local days = record.days
    for day = 1, amount() do days[day] = amount() end
    if #days > 0 and (now < days[1] or now >= days[#days]) then error({ days = true }, 0) end
    local known
    for _, other in ipairs(state.records) do
      if other.id == record.id then known = other end
    end
    if known then known.days = record.days
    else
      known = record
      begin(known)
    end
    known.seen, named[known] = now, true
    live[i] = known
  end
  local own, fadesAt = #live, FOREVER
  for _, record in ipairs(state.records) do
    local forgetsAt = record.seen + min(memoryOf(record) + LINGER, MOST_SEEN)
    if forgetsAt >= now and not named[record] then
      live[#live + 1] = record
      local implied = now - record.seen <= UNNAMED
      for i = 1, own do implied = implied or implies(live[i], record) end
      if not implied then fadesAt = min(fadesAt, forgetsAt) end
    end
  end
  state.records = live
  for _, record in ipairs(live) do
    local rule = rules[record.kind]
    if rule.forgottenAt(record) > now + 2 * memoryOf(record) + FARTHEST + UNEASE then rule.rebase(record, now) end
  end

  local spare, firm, hold = state.spare or {}, NEVER, FOREVER
  state.spare = spare
  for _, record in ipairs(live) do
    firm, hold = max(firm, record.begun or FOREVER), min(hold, record.hold)
  end
  local lead = max(wanted - hold, 0)
  local function refund(n, at)
    for _, record in ipairs(live) do
      if at > record.since then rules[record.kind].refund(record, n, at) end
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
  local old = state.free or {}
  for place = 1, #old, 2 do refund(old[place], old[place + 1]) end
  state.free = nil
  while spare[1] and spare[2] < now do refund(takeOut(1)) end

  local returns = amount()
  local repeated = returns > 0 and state.calls[session] and state.calls[session][1] >= number
  for _ = 1, returns do
    local n, at, from = amount(), amount(), amount()
    if not repeated then
      if at < now or at <= firm or newest(at) or #spare == 3 * MOST_FREE then refund(n, at)
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
      -- By then what it gave back is forgotten, or the connection is.
      if now - its[2] > 60000 then state.calls[other] = nil end
    end
  end
  if pause > 0 then state.pausedUntil = max(state.pausedUntil, now + pause) end

  local function earliest(n, ahead)
    local at = max(now, state.pausedUntil)
    for _ = 1, MOST_ROUNDS do
      local following = at
      for _, record in ipairs(live) do following = max(following, rules[record.kind].readyAt(record, at, n, ahead, lead)) end
      if following == at then
        for _, record in ipairs(live) do
          if record.limit < n then return FOREVER end
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
      if record.kind == 'smooth' then free = 0
      else free = min(free, record.limit - rules[record.kind].used(record, at) - n) end
    end
    for _, record in ipairs(live) do
      if not rules[record.kind].allows(record, at, n + free, lead) then return 0 end
    end
    return free
  end

  -- Counts the process among those for which a permit is still to come, and tells how many they are.
  local function contend()
    local known, count = state.contenders or {}, 0
    for other, heardAt in pairs(known) do
      if now - heardAt > CONTENDS then known[other] = nil else count = count + 1 end
    end
    if count < MOST_CONTENDERS then
      if not known[session] then count = count + 1 end
      known[session] = now
    end
    state.contenders = known
    return count
  end

  local units, beyond, contenders = {}, nil, 0
  for _ = 1, amount() do
    local count, n, more, within = amount(), amount(), amount(), amount()
    while count > 0 do
      local place = not beyond and placeOfSpare(n, 1) or nil
      local at = place and spare[place + 1]
      local from = beyond or place and at - lead or earliest(n, 0)
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
        elseif count > 1 then together = 1 + floor(room(n, (count - 1) * n, from) / n) end
        for _, record in ipairs(live) do rules[record.kind].take(record, each * together, at, lead) end
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
      local wait = rules[live[i].kind].readyAt(live[i], now, asked, before, lead) - now
      if wait > longest then longest, binding = wait, i end
    end
    local left, ready, place = before, nil, placeOfSpare(1, 1)
    while place and not ready do
      if spare[place] >= left + asked then ready = spare[place + 1] - lead end
      left, place = max(left - spare[place], 0), placeOfSpare(1, place + 3)
    end
    explained = { format('%.17g', ready or earliest(asked, left)), binding }
    for i = 1, own do
      local record = live[i]
      local rule = rules[record.kind]
      explained[#explained + 1] = max(record.limit - rule.used(record, now), 0)
      explained[#explained + 1] = format('%.17g', rule.returnsAt(record, now) - now)
    end
  end

  local rest = state.pausedUntil - now
  for _, record in ipairs(live) do
    rest = max(rest, rules[record.kind].forgottenAt(record) - now, 0)
  end
  SAVE
  return {
    format('%.17g', now), format('%.17g', hold), format('%.17g', state.pausedUntil), units, explained, contenders,
    fadesAt < FOREVER and format('%.17g', fadesAt) or nil,
  }
end

local done, answer = pcall(decide)
if done then return answer end
if type(answer) == 'table' and answer.days then return { format('%.17g', now), 'days' } end
return type(answer) == 'table' and answer.err and { err = answer.err } or { err = tostring(answer) }
`
