import { heldStrings } from './held-strings.js'
import { tableArguments } from './table-arguments.js'
import { tableDecisions } from './table-decisions.js'
import { tableFastPath } from './table-fast-path.js'
import { tableLocks } from './table-locks.js'
import { tableOperator } from './table-operator.js'
import { tableRecords } from './table-records.js'
import { tableTexts } from './table-texts.js'
import { tableValues } from './table-values.js'

/**
 * The lock table and the store's commit as a Redis script: the port of `engine/lock-table.ts` and `engine/commit.ts`,
 * held equal to them by a differential test. One call carries out a list of operations at one moment of the server's
 * clock.
 *
 * What differs from the original is where a grant is kept. The held key itself, a plain string with an expiry, is the
 * grant of an exclusive lock: that is what foreign `SET key value NX PX` clients see and respect, and what makes an
 * uncontended lock cheap. A request has a record beside it, and an entry in the sorted queue of each of its keys, only
 * from when it has to wait, is shared or takes permits, or when another request has met its held key and waits behind
 * it. The held key stays the truth for such a record: where the string is gone or another's, the record is dropped.
 *
 * KEYS: the counter, the queues and the requests of this slot, then the keys that operations name, in their order, and
 * last those that are only read beside them. ARGV: the own session; the words of the operations, one after the other,
 * as one JSON array, because hundreds of arguments would cost client and server several times what it takes to write
 * and to read that one; and what own held keys tell about their holder that tell nothing else.
 *
 * The answer is one item an operation, and last the hints for this session; or just the number that a lone operation
 * answers, because a client package takes much longer to read a list.
 */
export function tableScript({ heldKeys, clock, fastPath }: ScriptParts = STRINGS): string {
  const levels = [
    [begin(clock), fastPath],
    [tableTexts, heldKeys],
    [tableRecords],
    [tableDecisions],
    [tableArguments, tableValues, tableLocks, tableOperator, RUN],
  ]
  // A function that is made looks for each local that it uses through all those of the level that it is made in, and
  // finds those of outer levels at once: in one level most of a call's time would go into that.
  const texts = levels.map(parts => parts.join('\n'))
  return texts.join('\nreturn (function()\n') + '\nend)()'.repeat(levels.length - 1)
}

/** What a script is made of beside the table itself. */
export interface ScriptParts {
  /** How held keys are read and written. */
  readonly heldKeys: string
  /** Sets `stamp`, the digits of the time in microseconds. */
  readonly clock: string
  /** Carries out what it can before the table is made; may be nothing. */
  readonly fastPath: string
}

/** The server's clock. */
export const serverClock = String.raw`
local time = call('TIME')
stamp = time[1] .. sub('00000' .. time[2], -6)`

/** Locks as plain strings, by the server's clock. */
const STRINGS: ScriptParts = { heldKeys: heldStrings, clock: serverClock, fastPath: tableFastPath }

function begin(clock: string): string {
  return String.raw`
local call, try, format, find, sub = redis.call, redis.pcall, string.format, string.find, string.sub
local NUMBERS, QUEUES, REQUESTS = KEYS[1], KEYS[2], KEYS[3]
local SESSION, WORDS, MEMBER = ARGV[1], cjson.decode(ARGV[2]), ARGV[3]
local LAST = #WORDS
-- Where sessions are told of what concerns them. The tag of a slot is empty where there is no Cluster.
local CHANNELS = sub(NUMBERS, 1, -8) .. 'session:'
local PUBLISH = sub(NUMBERS, -10) == '{}:numbers' and 'PUBLISH' or 'SPUBLISH'
-- Which word is read next, and how many of the keys were named until now.
local position, named = 1, 3
local answers = {}
-- What this session is told beside that.
local hints = {}
-- The last number that was given, and the one that the counter has.
local number, written
-- The time in microseconds, as text and as a number, and in milliseconds.
local stamp
${clock}
local micros = tonumber(stamp)
local now = math.floor(micros / 1000)
-- Whether no queue is there, so that there is nothing to look for beside the held keys; and whether another program
-- keeps something else in their place.
local size = try('ZLEXCOUNT', QUEUES, '-', '+')
local spoilt, idle = type(size) == 'table', size == 0`
}

/** Carries the operations out, each of which fails alone. All is read before anything is written. */
const RUN = String.raw`
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
-- Refused only where nothing was written before, so that no number is in use that it should tell of.
if number ~= written then try('SET', NUMBERS, digits(number)) end
answers[#answers + 1] = hints
return answers`
