-- The short way: of one sliding limit above MAX_EXACT permits are out so recently that those which are wanted share
-- their entry, as nearly all do where many are given. Nothing but the head is read, and of it time and total are
-- written again: the entry itself follows with the next write of the whole, which a 2 in front asks for. The whole
-- expires late enough for any grant that can share the entry. A caller that wants a longer hold than the limit's own is
-- so far away that its calls are few: for it the way is never so short.
--
-- The head: 1 or 2, from when on it holds, total, when the newest entry began, for how long it stands, limit, permits
-- dropped, hold, end of the pause, length of the rest, and the rest: the id, and the noted namers between NULs; where
-- there are too many to note, a star.
local function decideByHead()
  local isPlain = #WORDS == 22 and WORDS[5] == '' and WORDS[6] == '0' and WORDS[10] == 'sliding' and WORDS[17] == '0'
  if not isPlain or tonumber(WORDS[11]) <= MAX_EXACT then return nil end
  local rest = HEAD_LENGTH + #WORDS[9]
  local head = call('GETRANGE', KEY, 0, rest - 1 + NAMERS_LENGTH)
  local form = head:byte(1)
  -- What follows the namers has no such texts between NULs.
  if (form == 49 or form == 50) and head:sub(HEAD_LENGTH + 1, rest) == WORDS[9]
    and (head:find('\0' .. WORDS[1] .. '\0', rest + 1, true) or head:find('\0*\0', rest + 1, true) == rest + 1) then
    local from, total, begunAt, grain, limit, dropped, hold, pausedUntil = unpack(HEAD_FORM, head, 2)
    local each, together = WORDS[20] + WORDS[21], tonumber(WORDS[19])
    total = total + each * together
    if now >= from and now - begunAt <= grain and total - limit <= dropped and tonumber(WORDS[4]) <= hold then
      call('SETRANGE', KEY, 0, '2' .. pack('<dd', now, total))
      local at = format('%.17g', now)
      local units = { together, each, at }
      if WORDS[21] ~= '0' then
        for i = 1, together do units[3 * i - 2], units[3 * i - 1], units[3 * i] = 1, each, at end
      end
      return { at, format('%.17g', hold), format('%.17g', pausedUntil), units, {} }
    end
  end
  return nil
end
