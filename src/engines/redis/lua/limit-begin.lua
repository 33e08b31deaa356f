-- The limiters' code. The server creates the functions of a library once and keeps them, so `start` sets everything
-- that belongs to one call.
local NEVER, FOREVER = -1 / 0, 1 / 0
local MAX_EXACT, PARTS = COARSE_MAX_EXACT, COARSE_PARTS
local HEAD_FORM, HEAD_LENGTH, NAMERS_LENGTH = '<ddddddddI2', 67, 224
local FARTHEST, MAX_BACKSTEP, MIN_STEP, MAX_ROUNDS = 10000, 1000, 0.0005, 8
local IN_FORCE, MAX_NAMERS, MAX_SPARES = 5000, 16, 1000
local CONTENDS, MAX_CONTENDERS, PRECISION = 3000, 100, 1000000
-- The tenants of a process without tenants.
local NO_TENANT = { '', 1 }
-- The server provides these during a call, and not while it loads a library.
local call, pack, unpack, floor, ceil, abs, max, min, format
-- The key of the limiter, the arguments of the call, and how many of them were read.
local KEY, WORDS, position
-- The time in milliseconds, and the state of the limiter.
local now, state
-- The place of each unit, besides calls, in the costs of the call.
local measures = {}

local function start(keys, words)
  call, pack, unpack = redis.call, struct.pack, struct.unpack
  floor, ceil, abs, max, min, format = math.floor, math.ceil, math.abs, math.max, math.min, string.format
  KEY, WORDS, position = keys[1], words, 0
  CLOCK
  state = nil
end

local function word()
  position = position + 1
  return WORDS[position]
end
local function amount() return tonumber(word()) end
