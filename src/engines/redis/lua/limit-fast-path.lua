-- The short way: one sliding limit, known already or the first of its limiter, and so few of its permits are out that
-- all that are wanted are available now, and a further one if the state is to be explained. Redis creates the functions
-- of a script again for every call, which costs more than such a decision; so there are none up to here, and the rules
-- handle everything else.
local needed = plain and (ARGV[20] + ARGV[21]) * ARGV[19] + (explains and 1 or 0)
if plain and not text and needed <= tonumber(ARGV[11]) then
  local begun = now - MIN_STEP
  state = {
    records = { {
      id = ARGV[9], kind = ARGV[10], limit = tonumber(ARGV[11]), per = tonumber(ARGV[12]), hold = tonumber(ARGV[13]),
      guard = tonumber(ARGV[14]), zone = ARGV[15], days = {}, begun = begun, since = begun, seen = now,
      namers = { ARGV[1] }, openAt = NEVER,
      log = { entries = '', total = 0, dropped = 0, droppedAt = NEVER, begunAt = NEVER, lastAt = NEVER },
    } },
    pausedUntil = NEVER, lastAt = NEVER, askedAt = now, calls = {}, spare = {},
  }
end
local record = state and plain and state.records[1]
local isNoted = record and not record.namers
for _, namer in ipairs(record and record.namers or {}) do isNoted = isNoted or namer == ARGV[1] end
if isNoted and not state.records[2] and record.id == ARGV[9] and state.askedAt - now <= MAX_BACKSTEP
  and now - record.seen <= IN_FORCE then
  local log, memory, each, together = record.log, record.per + record.guard, ARGV[20] + ARGV[21], tonumber(ARGV[19])
  local total, lead = log.total + each * together, max(ARGV[4] - record.hold, 0)
  local instant = now + lead
  if instant - lead < now then instant = instant + abs(instant) * 2 ^ -52 end
  if now >= state.pausedUntil and instant >= log.lastAt and log.total + needed - record.limit <= log.dropped then
    local grain = record.limit > MAX_EXACT and memory / PARTS or 0
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
    SAVE()
    local units = { together, each, at }
    if ARGV[21] ~= '0' then
      for i = 1, together do units[3 * i - 2], units[3 * i - 1], units[3 * i] = 1, each, at end
    end
    local explained = {}
    if explains then
      local oldest, high = 0, #log.entries / 16
      while oldest < high do
        local middle = floor((oldest + high) / 2)
        if unpack('<d', log.entries, middle * 16 + 1) > now - memory then high = middle else oldest = middle + 1 end
      end
      local before = oldest == 0 and log.dropped or unpack('<d', log.entries, oldest * 16 - 7)
      -- Never rounded down, as by the rules.
      local from = unpack('<d', log.entries, oldest * 16 + 1)
      local resets = from + memory
      local added = resets - from
      if from - (resets - added) + (memory - added) > 0 then resets = resets + abs(resets) * 2 ^ -52 end
      explained = {
        format('%.17g', now), 0, max(record.limit - (total - before), 0), format('%.17g', max(now, resets) - now),
      }
    end
    return {
      format('%.17g', now), format('%.17g', record.hold), format('%.17g', state.pausedUntil), units, explained,
    }
  end
end
