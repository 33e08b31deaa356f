-- Executes an operation. Operations name keys by their places among the keys of the call.
local function execute(operation)
  if isDamaged and operation.type ~= 'read' then unreadable(QUEUES) end
  for _, claim in ipairs(operation.claims or NONE) do claim.held = NAMES[claim.held] end
  vote = operation.vote
  return operations[operation.type](operation)
end

-- Executes all operations. The failure of one does not affect the others. Returns a list with one item for each
-- operation, and with the hints for this session last. If that would be a single number without hints, returns the
-- number alone, because a client package takes much longer to read a list.
local function main(keys, words, isScript)
  start(keys, words)
  local answers = {}
  for i, operation in ipairs(OPERATIONS) do
    local done, answer = pcall(execute, operation)
    if not done and type(answer) == 'table' and answer.unreadable then
      answer = { 'unreadable', answer.unreadable }
    elseif not done then
      local why = type(answer) == 'table' and (answer.refused or answer.err) or tostring(answer)
      -- As the reply to the whole call, this error makes the client look for the master.
      if begins(why, 'READONLY') then return { err = why } end
      answer = { 'error', why }
    end
    answers[i] = answer
  end
  -- A replica rejects a function before it begins, but a script only at its first write. This write changes nothing; it
  -- makes a client that only reads look for the master, too. It follows the operations, because after a write Redis
  -- neither rejects commands for lack of memory nor kills the script.
  local probe = isScript and try('HDEL', REQUESTS, '')
  if type(probe) == 'table' and begins(probe.err, 'READONLY') then return probe end
  expireUnused()
  keepNumber()
  if not answers[2] and not hints[1] and type(answers[1]) == 'number' then return answers[1] end
  answers[#answers + 1] = hints
  return answers
end
