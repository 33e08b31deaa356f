-- Carries the operations out, each of which fails alone. All is read before anything is written.
local tasks = {}
while position <= LAST do tasks[#tasks + 1] = begin() end
for _, task in ipairs(tasks) do
  local done, answer = pcall(task)
  if not done and type(answer) == 'table' and answer.unreadable then
    answer = { 'unreadable', answer.unreadable }
  elseif not done then
    local why = type(answer) == 'table' and (answer.refused or answer.err) or tostring(answer)
    -- As the answer to the whole call, this makes the client look for the server that can be written to.
    if begins(why, 'READONLY') then return { err = why } end
    answer = { 'error', why }
  end
  answers[#answers + 1] = answer
end
-- Changes nothing, and a replica refuses it: so a client that only reads looks for the master, too. It comes last,
-- because after a write Redis refuses no other for want of memory, and kills no script.
local probe = try('HDEL', REQUESTS, '')
if type(probe) == 'table' and begins(probe.err, 'READONLY') then return probe end
expireUnused()
-- Refused only where nothing was written before, so that no number is in use that it should report.
if number ~= written then try('SET', NUMBERS, digits(number)) end
answers[#answers + 1] = hints
return answers
