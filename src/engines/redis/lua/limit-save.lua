-- Writes the state. It expires when it no longer has an effect: after `rest` milliseconds, or a little later.
local function save(rest)
  local head, first = '0', state.records[1]
  -- A state with only a pause has no limits.
  if first and not state.records[2] and first.kind == 'sliding' and first.limit > MAX_EXACT then
    local grain, log = (first.per + first.guard) / PARTS, first.log
    local from = max(state.pausedUntil, state.askedAt, log.lastAt)
    -- Entries are shared only while the limit is in force.
    local stands = min(grain, first.seen + IN_FORCE - log.begunAt)
    local named = first.id .. '\0' .. table.concat(first.namers or { '*' }, '\0') .. '\0'
    head = '1' .. pack(HEAD_FORM, from, log.total, log.begunAt, stands, first.limit, log.dropped, first.hold,
      state.pausedUntil, #named) .. named
    rest = rest + grain
  end
  call('SET', KEY, head .. cmsgpack.pack(state), 'PX', format('%.0f', max(ceil(EXPIRY), 1)))
end
