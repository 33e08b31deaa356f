-- Part of the limiters' code: logs of grants, and the rules of each kind of limit.

-- The sum of a time and a duration, never rounded down.
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

-- The first entry for which `read` returns more than the bound, or with `orEqual` at least the bound; the number of
-- entries if there is none.
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

-- The entries from `first` on, with `n` added to their totals.
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

-- Rules: a record contains its definition: kind, limit, per, hold, guard -------------------------------------------

local sliding, smooth, calendar = {}, {}, {}
local rules = { sliding = sliding, smooth = smooth, calendar = calendar }

-- The unit of a record; empty for calls. An early build wrote none.
local function unitOf(record) return record.unit or '' end
-- What permits cost of a record's unit: calls, or amounts of the units that the caller has named.
local function costOf(record, n, amounts)
  if unitOf(record) == '' then return n end
  return amounts and amounts[measures[record.unit]] or 0
end
local function memoryOf(record) return record.per + record.guard end
-- Time at which a limit ends unless a process uses it again.
local function endsAt(record)
  return record.namers and #record.namers == 0 and NEVER or record.seen + IN_FORCE
end
local function grainOf(record) return record.limit > MAX_EXACT and memoryOf(record) / PARTS or 0 end
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
function sliding.note(record, n, at) insertGrant(record.log, n, at, memoryOf(record), memoryOf(record) / PARTS) end
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
smooth.note, smooth.isNewest, smooth.used = sliding.note, sliding.isNewest, sliding.used
function smooth.settle(record, change, at)
  local log, openAt, interval = record.log, record.openAt, intervalOf(record, 0)
  if change > 0 then
    sliding.note(record, change, now)
    record.openAt = max(openAt, min(max(openAt, now) + change * interval, now + record.per + record.guard))
  else
    sliding.refund(record, -change, at)
    record.openAt = min(openAt, max(openAt + change * interval, log.lastAt))
  end
end
function smooth.returnsAt(record, now) return max(now, record.openAt) end
function smooth.forgottenAt(record) return max(record.openAt, sliding.forgottenAt(record)) end
function smooth.rebase(record, now)
  sliding.rebase(record, now)
  record.openAt = min(record.openAt, now + record.per)
end

-- Start and end of the period that contains this time. Knows only the days that the caller has sent.
local function periodAt(record, time)
  local days = record.days
  if #days == 0 then
    local start = floor(time / record.per) * record.per
    return start, start + record.per
  end
  for i = 1, #days - 1 do
    if time >= days[i] and time < days[i + 1] then return days[i], days[i + 1] end
  end
  -- Beyond the known days: the time is too far ahead, or another process has sent the days long ago.
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
  local at, wanted = max(now, starts), n + ahead
  local left = record.limit - (ends == record.ends and record.used or 0)
  local open = at < ends - record.guard - lead
  if open and wanted <= left then return at end
  local periods = max(ceil((wanted - (open and max(left, 0) or 0)) / record.limit), 1)
  -- For days this is inexact, which does not matter so far ahead.
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
calendar.note = calendar.take
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

-- Counts a change of the amount that was granted at a time.
local function settle(record, change, at)
  local rule = rules[record.kind]
  if rule.settle then rule.settle(record, change, at)
  elseif change > 0 then rule.note(record, change, now)
  else rule.refund(record, -change, at) end
end
