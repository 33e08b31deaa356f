-- Part of the table's code: numbers, and the texts of held keys and queues.
local function unreadable(name) error({ unreadable = name }, 0) end

-- Raises what another client's mistake or a full memory did, to fail this operation alone; and with its name a key of
-- ours in whose place another program has put one of another type.
local function must(answer, name)
  if type(answer) == 'table' and answer.err then
    if name and answer.err:sub(1, 9) == 'WRONGTYPE' then unreadable(name) end
    error({ refused = answer.err }, 0)
  end
  return answer
end

-- tostring keeps 14 digits only.
local function digits(value) return ('%.0f'):format(value) end
local function place(order) return ('%016.0f'):format(order) end

-- The counter gets the time at once, because that is the next number unless another one is greater.
local function raise(least)
  if not number then
    local text = try('SET', NUMBERS, stamp, 'GET')
    -- A full memory refuses that, but nothing that frees some.
    local isWritten = type(text) ~= 'table'
    if not isWritten then text = must(try('GET', NUMBERS), NUMBERS) end
    local counted = tonumber(text or 0)
    if not counted or not (counted >= 0 and counted < NEVER) then
      if isWritten then call('SET', NUMBERS, text) end
      unreadable(NUMBERS)
    end
    number, written = counted, isWritten and micros or nil
  end
  number = math.max(number, least)
end

-- The clock keeps numbers rising when the counter was lost, the counter when the clock was set back.
local function nextNumber()
  raise(0)
  number = math.max(number + 1, ballot and ballot.least or micros)
  return number
end

-- Refused only where nothing was written before, so that no number is in use that it should report.
local function keepNumber()
  if number ~= written then try('SET', NUMBERS, digits(number)) end
end

-- What the entries of a key's queue begin with. The length keeps the queues of keys apart that begin alike.
local function head(key) return #key .. ':' .. key .. ':' end
local function entry(key, request) return head(key) .. request.sequence .. request.id end

local function begins(text, start) return text and text:sub(1, #start) == start end

-- What begins the text of a key held by this grant.
local function mark(id, granted) return 'signalbox/1 ' .. id .. ' ' .. (granted and digits(granted) .. ' ' or '') end

-- The parts of such a text: ID, number, since when, details. Nothing for that of a foreign client.
local function parseHeld(text) return text:match('^signalbox/1 (%S+) (%d+) (%d+) (.*)$') end
