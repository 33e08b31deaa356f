import { InvalidArgumentError, shown } from './errors.js'

/** Maximum number of characters of a key. */
export const MAX_KEY_LENGTH = 1024

/**
 * Checks a name that engines store: text of 1 to 1024 characters that is well-formed Unicode without NUL.
 * @throws InvalidArgumentError that names the option.
 */
export function checkKey(option: string, key: unknown): asserts key is string {
  if (typeof key !== 'string' || key.length === 0 || key.length > MAX_KEY_LENGTH || UNFIT.test(key)) {
    throw new InvalidArgumentError(
      `${option} must be a string of 1 to ${MAX_KEY_LENGTH} characters of well-formed Unicode without NUL, not ${shown(key)}`,
    )
  }
}

/** NUL, which ends a text in some engines, and halves of surrogate pairs, which have no UTF-8 form. */
const UNFIT = /\0|[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/

/** @throws InvalidArgumentError when a signal is neither an AbortSignal nor absent. */
export function checkSignal(signal: unknown): void {
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new InvalidArgumentError(`signal must be an AbortSignal, not ${shown(signal)}`)
  }
}

/** @throws InvalidArgumentError when the options are not an object or have an unknown name. */
export function checkOptions(options: unknown, known: readonly string[]): asserts options is object {
  if (typeof options !== 'object' || options === null) {
    throw new InvalidArgumentError(`options must be an object, not ${shown(options)}`)
  }
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) {
      const expected = `${known.length > 1 ? 'one of ' : ''}${known.join(', ')}`
      throw new InvalidArgumentError(`unknown option ${shown(name)}; it must be ${expected}`)
    }
  }
}

/** @throws InvalidArgumentError when the runtime does not know the time zone. */
export function checkTimeZone(timeZone: unknown): asserts timeZone is string {
  if (typeof timeZone === 'string' && isZone(timeZone)) return
  throw new InvalidArgumentError(`timeZone must be a name like 'Europe/Berlin', not ${shown(timeZone)}`)
}

function isZone(timeZone: string): boolean {
  try {
    return Intl.DateTimeFormat('en', { timeZone }).format(0) !== ''
  } catch {
    return false
  }
}

const UTC = /^(?:etc\/)?(?:utc|uct|universal|zulu|gmt)$/i

/**
 * The one spelling of a time zone that was checked; empty for UTC. Processes that spell it differently mean the same.
 */
export function spelledZone(timeZone: string): string {
  if (UTC.test(timeZone)) return ''
  const known = Intl.DateTimeFormat('en', { timeZone }).resolvedOptions().timeZone
  // Which of several names of a zone comes back depends on the version of Node.
  return known.toLowerCase() === timeZone.toLowerCase() ? known : timeZone
}

/** @throws InvalidArgumentError when a switch is neither true, false nor absent. */
export function flag(option: string, value: unknown, fallback: boolean): boolean {
  if (value === undefined) return fallback
  if (typeof value !== 'boolean')
    throw new InvalidArgumentError(`${option} must be true or false, not ${shown(value)}`)
  return value
}
