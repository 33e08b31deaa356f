import { COARSE_GRAINS } from '../../../engine/limits/definition.js'
import { luaFile } from './lua-file.js'
import { withConstants } from './server-code.js'

/**
 * The port of `engine/limits/reserve-permits.ts` and of the rules below it, held equal to them by a differential test.
 * One call decides for one limiter, at one moment of the server's clock.
 *
 * All that is known of a limiter is one string, which expires when it is as good as nothing: MessagePack, and before it
 * either the byte 0 or a head, which alone is read and written while permits come thick. A log of grants is a string
 * within it, pairs of doubles, of which only those are read that a decision needs.
 *
 * What differs from the original: a call says which one of its session it is, so that one that a connection has carried
 * out twice gives back once; the caller sends the days of time zones; and equal units that follow each other are sent,
 * decided and answered together, as far as they have the same instant, which has the same result.
 *
 * Key: the limiter. Arguments: session, number of the call, horizon, hold, pause (empty for none), permits to explain (0
 * for none) and permits ahead of them, then counted lists: of limits (id, kind, limit, per, hold, guard, and a
 * counted list of days), of permits to take back (number, instant, from when on), of units (how many equal ones,
 * number, more, within).
 */
export function limitCode(parts: LimitCodeParts = SERVER): string {
  return codeOf(parts, ['limit-head-path', 'limit-whole', 'limit-save', 'limit-rules', 'limit-decision'])
}

/** Describes a limiter and changes nothing. Its answer is that of `engine/limits/report.ts`. Key: the limiter. */
export function limitLookCode(): string {
  return codeOf(SERVER, ['limit-whole', 'limit-rules', 'limit-look'])
}

function codeOf({ clock, expiry }: LimitCodeParts, files: readonly string[]): string {
  const code = ['limit-begin', ...files].map(luaFile).join('\n')
  return withConstants(`${code}\nreturn main`, {
    COARSE_MAX_EXACT: COARSE_GRAINS.maxExact,
    COARSE_PARTS: COARSE_GRAINS.parts,
    CLOCK: clock,
    EXPIRY: expiry,
  })
}

/** Parts of the code that a test may replace. */
interface LimitCodeParts {
  /** Sets `now`, milliseconds. */
  readonly clock: string
  /** Gives the milliseconds after which the state expires, from `rest`, those for which it means anything. */
  readonly expiry: string
}

const SERVER: LimitCodeParts = {
  clock: `local time = call('TIME')
  now = time[1] * 1000 + time[2] / 1000`,
  expiry: 'rest',
}
