-- The fast path, for a single sliding limit above MAX_EXACT permits. It applies if the newest entry of the log is so
-- recent that the requested permits share it, as nearly all do at a high rate. It reads only the head, and writes only
-- its time and total. It also sets the first character to 2, so that the next call that reads the whole state updates
-- the entry. The state expires late enough for every grant that can share the entry. Callers that want a longer hold
-- than that of the limit never take this path: they are far away, so their calls are few.
--
-- The head: 1 or 2, the time from which it applies, total, when the newest entry began, for how long it can be shared,
-- limit, permits dropped, hold, end of the pause, length of the rest, and the rest: the ID, and between NULs the
-- sessions that use the limit, or a star if there are too many.
local function decideByHead()
  local isPlain = #WORDS == 25 and WORDS[5] == '' and WORDS[6] == '0' and WORDS[10] == 'sliding'
    and WORDS[18] == '0' and WORDS[19] == '0' and WORDS[20] == '0'
  if not isPlain or tonumber(WORDS[11]) <= MAX_EXACT then return nil end
  local rest = HEAD_LENGTH + #WORDS[9]
  local head = call('GETRANGE', KEY, 0, rest - 1 + NAMERS_LENGTH)
  local form = head:byte(1)
  -- The MessagePack that follows contains no session ID between NULs.
  if (form == 49 or form == 50) and head:sub(HEAD_LENGTH + 1, rest) == WORDS[9]
    and (head:find('\0' .. WORDS[1] .. '\0', rest + 1, true) or head:find('\0*\0', rest + 1, true) == rest + 1) then
    local from, total, begunAt, grain, limit, dropped, hold, pausedUntil = unpack(HEAD_FORM, head, 2)
    local each, together = WORDS[23] + WORDS[24], tonumber(WORDS[22])
    total = total + each * together
    if now >= from and now - begunAt <= grain and total - limit <= dropped and tonumber(WORDS[4]) <= hold then
      call('SETRANGE', KEY, 0, '2' .. pack('<dd', now, total))
      local at = format('%.17g', now)
      local units = { together, each, at }
      if WORDS[24] ~= '0' then
        for i = 1, together do units[3 * i - 2], units[3 * i - 1], units[3 * i] = 1, each, at end
      end
      return { at, format('%.17g', hold), format('%.17g', pausedUntil), units, {} }
    end
  end
  return nil
end
