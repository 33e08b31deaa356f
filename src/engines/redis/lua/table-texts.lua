-- Part of the table's code: numbers, and the texts of held keys and queues.
local function unreadable(name) error({ unreadable = name }, 0) end

-- Raises an error reply, so that only this operation fails. Its cause may be a mistake of another client, or a full
-- memory. With the name of a key of ours, a wrong type is raised as unreadable, because another program has written to
-- the key.
local function must(answer, name)
  if type(answer) == 'table' and answer.err then
    if name and answer.err:sub(1, 9) == 'WRONGTYPE' then unreadable(name) end
    error({ refused = answer.err }, 0)
  end
  return answer
end

-- tostring keeps only 14 digits.
local function digits(value) return ('%.0f'):format(value) end
local function place(order) return ('%016.0f'):format(order) end

-- Reads the counter, and writes the time to it at once, because that is the next number unless another one is greater.
local function raise(least)
  if not number then
    local text = try('SET', NUMBERS, stamp, 'GET')
    -- A server with a full memory rejects this write, but not the commands that free memory.
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

-- Numbers always increase: by the clock if the counter was lost, and by the counter if the clock was set back.
local function nextNumber()
  raise(0)
  number = math.max(number + 1, vote and vote.least or micros)
  return number
end

-- The server rejects this write only if the call has written nothing before. Then no number of this call is in use.
local function keepNumber()
  if number ~= written then try('SET', NUMBERS, digits(number)) end
end

-- Prefix of the entries of a key's queue. The length separates the queues of keys that begin alike.
local function queuePrefix(key) return #key .. ':' .. key .. ':' end
local function queueEntry(key, request) return queuePrefix(key) .. request.sequence .. request.id end

local function begins(text, start) return text and text:sub(1, #start) == start end

-- Prefix of the text of a key that this grant holds.
local function heldPrefix(id, granted)
  return 'signalbox/1 ' .. id .. ' ' .. (granted and digits(granted) .. ' ' or '')
end

-- The parts of such a text: ID, number, when the request entered the queue, details. Nil for the text of a foreign
-- client, or of several holders.
local function parseHeld(text) return text:match('^signalbox/1 (%S+) (%d+) (%d+) (.*)$') end
