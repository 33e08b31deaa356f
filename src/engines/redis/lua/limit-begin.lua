local call, floor, ceil, abs = redis.call, math.floor, math.ceil, math.abs
local max, min, format = math.max, math.min, string.format
local pack, unpack = struct.pack, struct.unpack
local NEVER, FOREVER = -math.huge, math.huge
local MAX_EXACT, PARTS = COARSE_MAX_EXACT, COARSE_PARTS
local HEAD_FORM, HEAD_LENGTH, NAMERS_LENGTH = '<ddddddddI2', 67, 224
local FARTHEST, MAX_BACKSTEP, MIN_STEP, MAX_ROUNDS = 10000, 1000, 0.0005, 8
local IN_FORCE, MAX_NAMERS, MAX_SPARES = 5000, 16, 1000
local CONTENDS, MAX_CONTENDERS = 3000, 100
local explains = ARGV[6] == '1' and ARGV[7] == '0'
local plain = #ARGV == 22 and ARGV[5] == '' and (explains or ARGV[6] == '0')
  and ARGV[10] == 'sliding' and ARGV[17] == '0'
