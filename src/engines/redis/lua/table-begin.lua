-- Code that executes calls. A function of a library is made once and kept by the server, so all that belongs to one
-- call is set by `start`.
local call, try
-- What a call gets: the names of all its keys, those that every call has, the session, the operations, and the details
-- of its held keys that say nothing else.
local NAMES, NUMBERS, QUEUES, REQUESTS, SIGNS, SESSION, OPERATIONS, MEMBER
-- The channels that notify sessions, and the command that sends to them.
local CHANNELS, PUBLISH
-- What a held key says when several may hold it; by the name of their queues it is known to be ours.
local SHARED
-- What else this session is notified of.
local hints
-- The last number that was given, and the one that the counter has.
local number, written
-- The time in microseconds, as text and as a number, and in milliseconds.
local stamp, micros, now
-- Whether no queue is there, so that only the held keys matter; and whether another program keeps something else in
-- their place.
local idle, spoilt
-- Set while an operation is a vote, one of those of several servers: its place in the queues, which is the same on all
-- of them, and the least number of its grant.
local ballot
-- What was read of requests, and the first entries of queues, until they change: a decision looks at them several
-- times.
local loaded, fronts
-- The texts of held keys that were read, or written, by this call.
local texts
-- When the last signs of sessions came.
local signs
-- Groups of queues, and the keys whose requests this call looks at one by one.
local groups, apart
-- When the last of the requests that were saved is over; and whether a request was removed.
local latest, forgotten
-- Whether a call has used these since they were made.
local isUsed = true

local function start(keys, words)
  call, try = redis.call, redis.pcall
  if keys[1] ~= NUMBERS then
    NUMBERS, QUEUES, REQUESTS, SIGNS = keys[1], keys[2], keys[3], keys[4]
    -- The tag of a slot is empty where there is no Cluster.
    PUBLISH = NUMBERS:sub(-10) == '{}:numbers' and 'PUBLISH' or 'SPUBLISH'
    CHANNELS = NUMBERS:sub(1, -8) .. 'session:'
    SHARED = 'signalbox/1 shared ' .. QUEUES
  end
  NAMES = keys
  SESSION, OPERATIONS, MEMBER = words[1], cjson.decode(words[2]), words[3]
  local time = call('TIME')
  stamp = time[1] .. ('00000' .. time[2]):sub(-6)
  micros = tonumber(stamp)
  now = math.floor(micros / 1000)
  local size = try('ZLEXCOUNT', QUEUES, '-', '+')
  spoilt, idle = type(size) == 'table', size == 0
  hints, number, written, ballot, texts = {}, nil, nil, nil, {}
  -- While no request is in a queue, nothing of this is used, so most calls of most servers make no new tables.
  if isUsed then loaded, fronts, signs, groups, apart, latest, forgotten = {}, {}, {}, {}, {}, 0, false end
  isUsed = not idle
end
