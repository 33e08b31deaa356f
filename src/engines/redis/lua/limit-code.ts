import { COARSE_GRAINS } from '../../../engine/limits/definition.js'
import { luaFile } from './lua-file.js'
import { withConstants } from './server-code.js'

/**
 * The port of `engine/limits/reserve-permits.ts` and of its rules. A differential test compares them. One call decides
 * for one limiter, at one time of the server's clock.
 *
 * The state of a limiter is one string, which expires when it no longer has an effect. It is MessagePack after either
 * the character `0` or a head. While grants follow each other closely, only the head is read and written. A log of
 * grants is a string of pairs of doubles in the state; a decision reads only the pairs that it needs.
 *
 * It differs from the original in three ways. Each call has a number within its session, so a call that is executed
 * twice takes back returned permits only once. The caller sends the days of time zones. Equal units in a row are sent,
 * decided and answered together while they get the same instant, which has the same result.
 *
 * Key: the limiter. Arguments: session, number of the call, horizon, hold, pause (empty for none), permits to explain
 * (0 for none) and permits ahead of them. Then lists, each after its length: limits (id, kind, limit, per, hold, guard,
 * time zone, unit, and a list of days), names of units besides calls, returned permits (number, instant, from when they
 * could be used), tenants (name, weight), and permits (how many equal ones, number, more, within). After the names of
 * units, the amounts that calls have used in addition, of the permits to explain, and of those ahead of them, for each
 * unit; after each entry of returned permits and permits, its amounts.
 */
export function limitCode(parts: LimitCodeParts = SERVER): string {
  return codeOf(parts, ['limit-head-path', 'limit-whole', 'limit-save', 'limit-rules', 'limit-decision'])
}

/**
 * Returns code that describes a limiter and changes nothing. Its answer corresponds to `engine/limits/report.ts`. Key:
 * the limiter.
 */
export function limitLookCode(): string {
  return codeOf(SERVER, ['limit-whole', 'limit-rules', 'limit-look'])
}

/** Joins files. Each can use the functions of those before it. */
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
  /** Sets `now`, in milliseconds. */
  readonly clock: string
  /**
   * Expression for the time until the state expires, in milliseconds. In it, `rest` is the time for which the state has
   * an effect.
   */
  readonly expiry: string
}

const SERVER: LimitCodeParts = {
  clock: `local time = call('TIME')
  now = time[1] * 1000 + time[2] / 1000`,
  expiry: 'rest',
}
