local micros = tonumber(stamp)
local now = math.floor(micros / 1000)
-- Whether no queue is there, so that only the held keys matter; and whether another program keeps something else in
-- their place.
local size = try('ZLEXCOUNT', QUEUES, '-', '+')
local spoilt, idle = type(size) == 'table', size == 0
