-- Reads the whole state.
local function readState()
  local text = call('GET', KEY)
  if not text then return end
  if text:sub(1, 1) == '0' then
    state = cmsgpack.unpack(text:sub(2))
    return
  end
  if not text:find('^[12]') then error('the state of the limiter has an unknown form') end
  local at, total, _, _, _, _, _, _, length = unpack(HEAD_FORM, text, 2)
  state = cmsgpack.unpack(text:sub(HEAD_LENGTH + 1 + length))
  if text:sub(1, 1) == '2' then
    local record = state.records[1]
    local log = record.log
    log.entries = log.entries:sub(1, -17) .. pack('<dd', at, total)
    log.total, log.lastAt, record.seen, state.askedAt, state.lastAt = total, at, at, at, max(state.lastAt, at)
  end
end
