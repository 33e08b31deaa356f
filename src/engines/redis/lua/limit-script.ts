import { COARSE_GRAINS } from '../../../engine/limits/definition.js'
import { limitDecision } from './limit-decision.js'
import { limitLook } from './limit-look.js'
import { limitFastPath, limitHeadPath } from './limit-fast-paths.js'
import { limitRules } from './limit-rules.js'

/**
 * The port of `engine/limits/reserve.ts` and of the rules below it, held equal to them by a differential test. One call
 * decides for one limiter, at one moment of the server's clock.
 *
 * All that is known of a limiter is one string, which expires when it is as good as nothing: MessagePack, and before it
 * either the byte 0 or a head, which alone is read and written while permits come thick. A log of grants is a string
 * within it, pairs of doubles, of which only those are read that a decision needs.
 *
 * What differs from the original: a call says which one of its session it is, so that one that a connection has carried
 * out twice gives back once; the days of time zones are told by the caller; and equal units that follow each other are
 * told, decided and answered together, as far as they have the same instant, which comes to the same.
 *
 * KEYS: the limiter. ARGV: session, number of the call, horizon, hold, pause (empty for none), permits to explain (0 for none) and
 * permits ahead of them, then counted lists: of limits (id, kind, limit, per, hold, guard, and a counted list of
 * days), of permits to take back (number, instant, from when on), of units (how many equal ones, number, more,
 * within).
 */
export function limitScript({ clock, expiry }: LimitScriptParts = SERVER): string {
  const parts = [
    BEGIN.replace('CLOCK', clock),
    limitHeadPath,
    WHOLE,
    limitFastPath,
    limitRules,
    limitDecision,
  ]
  return parts.join('').replaceAll('SAVE', SAVE.trim()).replaceAll('EXPIRY', expiry)
}

/** Describes a limiter and changes nothing. Its answer is that of `engine/limits/report.ts`. KEYS: the limiter. */
export function limitLookScript(): string {
  return [BEGIN.replace('CLOCK', SERVER.clock), WHOLE, limitRules, limitLook].join('')
}

/** What of a script a test replaces. */
interface LimitScriptParts {
  /** Sets `now`, milliseconds. */
  readonly clock: string
  /** Gives the milliseconds after which the state expires, from `rest`, those for which it means anything. */
  readonly expiry: string
}

const SERVER: LimitScriptParts = {
  clock: `local time = call('TIME')
local now = time[1] * 1000 + time[2] / 1000`,
  expiry: 'rest',
}

const BEGIN = String.raw`
local call, floor, ceil, abs = redis.call, math.floor, math.ceil, math.abs
local max, min, format = math.max, math.min, string.format
local pack, unpack = struct.pack, struct.unpack
local NEVER, FOREVER = -math.huge, math.huge
local MOST_EXACT, PARTS = ${COARSE_GRAINS.mostExact}, ${COARSE_GRAINS.parts}
local HEAD_FORM, HEAD_LENGTH, NAMERS_LENGTH = '<ddddddddI2', 67, 224
local FARTHEST, UNEASE, LEAST_STEP, MOST_ROUNDS = 10000, 1000, 0.0005, 8
local IN_FORCE, MOST_NAMERS, MOST_FREE = 5000, 16, 1000
local CONTENDS, MOST_CONTENDERS = 3000, 100
CLOCK
local plain = #ARGV == 22 and ARGV[5] == '' and ARGV[6] == '0' and ARGV[10] == 'sliding' and ARGV[17] == '0'
`

/** Reads all that is known. */
const WHOLE = String.raw`
local text, state = call('GET', KEYS[1]), nil
if text and text:sub(1, 1) == '0' then state = cmsgpack.unpack(text:sub(2))
elseif text and not text:find('^[12]') then error('no limit is written like that')
elseif text then
  local at, total, _, _, _, _, _, _, length = unpack(HEAD_FORM, text, 2)
  state = cmsgpack.unpack(text:sub(HEAD_LENGTH + 1 + length))
  if text:sub(1, 1) == '2' then
    local record = state.records[1]
    local log = record.log
    log.entries = log.entries:sub(1, -17) .. pack('<dd', at, total)
    log.total, log.lastAt, record.seen, state.askedAt, state.lastAt = total, at, at, at, max(state.lastAt, at)
  end
end
`

/** Writes all that is known, for as long as it means anything: so far \`rest\` milliseconds. */
const SAVE = String.raw`
local head, first = '0', state.records[1]
if not state.records[2] and first.kind == 'sliding' and first.limit > MOST_EXACT then
  local grain, log = (first.per + first.guard) / PARTS, first.log
  local from = max(state.pausedUntil, state.askedAt, log.lastAt)
  -- As long as it is certainly in force.
  local stands = min(grain, first.seen + IN_FORCE - log.begunAt)
  local named = first.id .. '\0' .. table.concat(first.namers or { '*' }, '\0') .. '\0'
  head = '1' .. pack(HEAD_FORM, from, log.total, log.begunAt, stands, first.limit, log.dropped, first.hold,
    state.pausedUntil, #named) .. named
  rest = rest + grain
end
call('SET', KEYS[1], head .. cmsgpack.pack(state), 'PX', format('%.0f', max(ceil(EXPIRY), 1)))
`
