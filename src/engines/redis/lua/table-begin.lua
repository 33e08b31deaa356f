-- Executes calls. The server creates the functions of a library once and keeps them, so `start` sets everything that
-- belongs to one call.
local call, try
-- From the call: the names of all its keys; the names of the keys that every call has; the session; the operations; and
-- the default details of held keys.
local NAMES, NUMBERS, QUEUES, REQUESTS, SIGNS, SESSION, OPERATIONS, MEMBER
-- Prefix of the channels of sessions, and the command that publishes to them.
local CHANNELS, PUBLISH
-- The text of a held key with several holders. The name of the queues in it identifies it as ours.
local SHARED
-- The hints for this session, for the answer.
local hints
-- The last number that was assigned, and the number that is stored in the counter.
local number, written
-- The time in microseconds, as text and as a number, and in milliseconds.
local stamp, micros, now
-- Whether all queues are empty, so that only the held keys matter; and whether another program has written to the key
-- of the queues.
local idle, isDamaged
-- Set while an operation is a vote in a quorum: `order` is the place of the request in the queues, the same on all
-- servers, and `least` the minimum number of its grant.
local vote
-- Caches of the requests that were read, and of the first entries of queues. A decision uses them several times.
local loaded, fronts
-- The texts of the held keys that this call has read or written.
local texts
-- The times of the last signs of sessions.
local signs
-- The groups of readers or permit holders, by key; and the keys whose requests this call examines one by one.
local groups, ungrouped
-- The latest time until which a request that this call has saved keeps its place; and whether a request was removed.
local latest, forgotten

local function start(keys, words)
  call, try = redis.call, redis.pcall
  if keys[1] ~= NUMBERS then
    NUMBERS, QUEUES, REQUESTS, SIGNS = keys[1], keys[2], keys[3], keys[4]
    -- Without Cluster, the hash tag is empty.
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
  isDamaged, idle = type(size) == 'table', size == 0
  hints, number, written, vote, texts = {}, nil, nil, nil, {}
  loaded, fronts, signs, groups, ungrouped, latest, forgotten = {}, {}, {}, {}, {}, 0, false
end
