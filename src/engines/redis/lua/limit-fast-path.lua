-- The short way: one sliding limit that is known already, and so few of its permits are out that all that are wanted
-- are available now. Redis creates the functions of a script again for every call, which costs more than such a
-- decision; so there are none up to here, and the rules handle everything else.
local record = state and plain and state.records[1]
local isNoted = record and not record.namers
for _, namer in ipairs(record and record.namers or {}) do isNoted = isNoted or namer == ARGV[1] end
if isNoted and not state.records[2] and record.id == ARGV[9] and state.askedAt - now <= MAX_BACKSTEP
  and now - record.seen <= IN_FORCE then
  local log, memory, each, together = record.log, record.per + record.guard, ARGV[20] + ARGV[21], tonumber(ARGV[19])
  local total, lead = log.total + each * together, max(ARGV[4] - record.hold, 0)
  local instant = now + lead
  if instant - lead < now then instant = instant + abs(instant) * 2 ^ -52 end
  if now >= state.pausedUntil and instant >= log.lastAt and total - record.limit <= log.dropped then
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
    return { format('%.17g', now), format('%.17g', record.hold), format('%.17g', state.pausedUntil), units, {} }
  end
end
