/**
 * The shortest way: of one sliding limit above MOST_EXACT permits are out so recently that those which are wanted share
 * their entry, as nearly all do where many are given. Nothing but the head is read, and of it time and total are
 * written anew: the entry itself follows with the next write of the whole, which a 2 in front asks for. The whole
 * expires late enough for any grant that can share the entry. A caller that wants a longer hold than the limit's own
 * is so far away that its calls are few: for it the way is never so short.
 *
 * The head: 1 or 2, from when on it holds, total, when the newest entry began, for how long it stands, limit, permits
 * dropped, hold, end of the pause, length of the rest, and the rest: the id, and the noted namers between NULs; where
 * there are too many to note, a star.
 */
export const limitHeadPath = String.raw`
if plain and tonumber(ARGV[11]) > MOST_EXACT then
  local rest = HEAD_LENGTH + #ARGV[9]
  local head = call('GETRANGE', KEYS[1], 0, rest - 1 + NAMERS_LENGTH)
  local form = head:byte(1)
  -- What follows the namers has no such texts between NULs.
  if (form == 49 or form == 50) and head:sub(HEAD_LENGTH + 1, rest) == ARGV[9]
    and (head:find('\0' .. ARGV[1] .. '\0', rest + 1, true) or head:find('\0*\0', rest + 1, true) == rest + 1) then
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

/**
 * The short way: one sliding limit that is known already, and so few of its permits are out that all that are wanted
 * can be had now. Redis makes the functions of a script anew for every call, which costs more than such a decision; so
 * there are none up to here, and all else is left to the rules.
 */
export const limitFastPath = String.raw`
local record = state and plain and state.records[1]
local isNoted = record and not record.namers
for _, namer in ipairs(record and record.namers or {}) do isNoted = isNoted or namer == ARGV[1] end
if isNoted and not state.records[2] and record.id == ARGV[9] and state.askedAt - now <= UNEASE
  and now - record.seen <= IN_FORCE then
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
