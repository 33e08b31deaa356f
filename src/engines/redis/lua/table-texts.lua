-- Part of the table's script: numbers, and the texts of held keys and queues.
-- Stands for a holder that is not ours.
local FOREIGN = '?'
-- What a held key says when several may hold it; by the name of their queues it is known to be ours.
local SHARED = 'signalbox/1 shared ' .. QUEUES

-- Set while an operation is a vote, one of those of several servers: its place in the queues, which is the same on all
-- of them, and the least number of its grant.
local ballot

local function unreadable(name) error({ unreadable = name }, 0) end

-- Raises what another client's mistake or a full memory did, to fail this operation alone; and with its name a key of
-- ours in whose place another program has put one of another type.
local function must(answer, name)
  if type(answer) == 'table' and answer.err then
    if name and sub(answer.err, 1, 9) == 'WRONGTYPE' then unreadable(name) end
    error({ refused = answer.err }, 0)
  end
  return answer
end

-- tostring keeps 14 digits only.
local function digits(value) return format('%.0f', value) end
local function place(order) return format('%016.0f', order) end

local function raise(least)
  if not number then
    local text = try('GET', NUMBERS)
    local counted = type(text) ~= 'table' and tonumber(text or 0)
    if not counted or not (counted >= 0 and counted < NEVER) then unreadable(NUMBERS) end
    number = counted
  end
  number = math.max(number, least)
end

-- The clock keeps numbers rising when the counter was lost, the counter when the clock was set back.
local function nextNumber()
  raise(0)
  number = math.max(number + 1, ballot and ballot.least or micros)
  return number
end

-- What the entries of a key's queue begin with. The length keeps the queues of keys apart that begin alike.
local function head(key) return #key .. ':' .. key .. ':' end
local function entry(key, request) return head(key) .. request.sequence .. request.id end

local function begins(text, start) return text and text:sub(1, #start) == start end

-- What begins the text of a key held by this grant.
local function mark(id, granted) return 'signalbox/1 ' .. id .. ' ' .. (granted and digits(granted) .. ' ' or '') end

-- The parts of such a text: ID, number, since when, details. Nothing for that of a foreign client.
local function parseHeld(text) return text:match('^signalbox/1 (%S+) (%d+) (%d+) (.*)$') end
