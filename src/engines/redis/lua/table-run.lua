-- Executes an operation. Operations name keys by their places among those of the call.
local function execute(operation)
  if spoilt and operation.type ~= 'read' then unreadable(QUEUES) end
  for _, claim in ipairs(operation.claims or NONE) do claim.held = NAMES[claim.held] end
  ballot = operation.ballot
  return operations[operation.type](operation)
end

-- Executes all operations, each of which fails alone. Answers with one item an operation, and last the hints for this
-- session; or just with the number that a lone operation answers, because a client package takes much longer to read a
-- list.
local function main(keys, words, isScript)
  start(keys, words)
  local answers = {}
  for i, operation in ipairs(OPERATIONS) do
    local done, answer = pcall(execute, operation)
    if not done and type(answer) == 'table' and answer.unreadable then
      answer = { 'unreadable', answer.unreadable }
    elseif not done then
      local why = type(answer) == 'table' and (answer.refused or answer.err) or tostring(answer)
      -- As the answer to the whole call, this makes the client look for the server that can be written to.
      if begins(why, 'READONLY') then return { err = why } end
      answer = { 'error', why }
    end
    answers[i] = answer
  end
  -- A replica refuses a function before it begins, but a script at its first write only. This one changes nothing, so
  -- that a client that only reads looks for the master, too. It comes last, because after a write Redis refuses no other for
  -- want of memory, and kills no script.
  local probe = isScript and try('HDEL', REQUESTS, '')
  if type(probe) == 'table' and begins(probe.err, 'READONLY') then return probe end
  expireUnused()
  keepNumber()
  if not answers[2] and not hints[1] and type(answers[1]) == 'number' then return answers[1] end
  answers[#answers + 1] = hints
  return answers
end
