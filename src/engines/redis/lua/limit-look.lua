-- Describes a limiter: its pause, then its limits, then the sessions that wait.
local function main(keys, words)
  start(keys, words)
  readState()
  if not state then return { '-inf', {}, {} } end
  local limits, waiting = {}, {}
  for _, record in ipairs(state.records) do
    local rule = rules[record.kind]
    limits[#limits + 1] = record.id
    limits[#limits + 1] = rule.used(record, now)
    limits[#limits + 1] = format('%.17g', rule.returnsAt(record, now) - now)
    limits[#limits + 1] = endsAt(record) >= now and 1 or 0
  end
  for session, seenAt in pairs(state.contenders or {}) do
    if now - seenAt <= CONTENDS then waiting[#waiting + 1] = session end
  end
  return { format('%.17g', state.pausedUntil - now), limits, waiting }
end
