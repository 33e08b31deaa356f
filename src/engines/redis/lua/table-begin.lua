local call, try, format, find, sub = redis.call, redis.pcall, string.format, string.find, string.sub
local NUMBERS, QUEUES, REQUESTS, SIGNS = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local SESSION, WORDS, MEMBER = ARGV[1], cjson.decode(ARGV[2]), ARGV[3]
local LAST = #WORDS
-- The channels that notify sessions. The tag of a slot is empty where there is no Cluster.
local CHANNELS = sub(NUMBERS, 1, -8) .. 'session:'
local PUBLISH = sub(NUMBERS, -10) == '{}:numbers' and 'PUBLISH' or 'SPUBLISH'
-- Which word is read next, and how many of the keys were named until now.
local position, named = 1, 4
local answers = {}
-- What else this session is notified of.
local hints = {}
-- The last number that was given, and the one that the counter has.
local number, written
-- The time in microseconds, as text and as a number, and in milliseconds.
local stamp
