local micros = tonumber(stamp)
local now = math.floor(micros / 1000)
-- Whether no queue is there, so that there is nothing to look for beside the held keys; and whether another program
-- keeps something else in their place.
local size = try('ZLEXCOUNT', QUEUES, '-', '+')
local spoilt, idle = type(size) == 'table', size == 0
