import { InvalidArgumentError, shown } from './errors.js'

export const MAX_KEY_LENGTH = 1024

/**
 * Checks a name that engines store: 1 to 1024 characters of well-formed Unicode without NUL.
 * @throws InvalidArgumentError
 */
export function checkKey(option: string, key: unknown): asserts key is string {
  if (typeof key !== 'string' || !isKey(key)) {
    throw new InvalidArgumentError(
      `${option} must be a string of 1 to ${MAX_KEY_LENGTH} characters of well-formed Unicode without NUL, not ${shown(key)}`,
    )
  }
}

/** Whether an engine can keep this text as a key. */
export function isKey(text: string): boolean {
  return text.length > 0 && text.length <= MAX_KEY_LENGTH && !UNFIT.test(text)
}

/** NUL, which ends a string in some engines, and lone surrogates, which UTF-8 can't represent. */
const UNFIT = /\0|[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/

export function checkSignal(signal: unknown): void {
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new InvalidArgumentError(`signal must be an AbortSignal, not ${shown(signal)}`)
  }
}

/**
 * Checks that options are an object with known names only.
 * @param example options as a caller writes them, for the error.
 * @throws InvalidArgumentError when the options are not an object, or one is unknown.
 */
export function checkOptions(
  options: unknown,
  known: readonly string[],
  example?: string,
): asserts options is object {
  if (typeof options !== 'object' || options === null) {
    const like = example === undefined ? '' : ` like ${example}`
    throw new InvalidArgumentError(`options must be an object${like}, not ${shown(options)}`)
  }
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) {
      const expected = `${known.length > 1 ? 'one of ' : ''}${known.join(', ')}`
      throw new InvalidArgumentError(`unknown option ${shown(name)}; it must be ${expected}`)
    }
  }
}

/**
 * @param owner the method that takes the task. @param call the call as a caller writes it. Both are for the error.
 * @throws InvalidArgumentError unless the task is a function.
 */
export function checkTask(owner: string, task: unknown, call: string): void {
  if (typeof task !== 'function')
    throw new InvalidArgumentError(
      `the task of ${owner} must be a function, not ${shown(task)}: write ${call}`,
    )
}

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

/** Returns one spelling for all spellings of a valid time zone; empty for UTC. */
export function spelledZone(timeZone: string): string {
  if (UTC.test(timeZone)) return ''
  const known = Intl.DateTimeFormat('en', { timeZone }).resolvedOptions().timeZone
  // The runtime's name for a zone with several names depends on the version of Node.
  return known.toLowerCase() === timeZone.toLowerCase() ? known : timeZone
}

/** Returns a boolean option, or its default. @throws InvalidArgumentError */
export function flag(option: string, value: unknown, fallback: boolean): boolean {
  if (value === undefined) return fallback
  if (typeof value !== 'boolean')
    throw new InvalidArgumentError(`${option} must be true or false, not ${shown(value)}`)
  return value
}

/** Checks that a value is an integer from `min` to `max`. @throws InvalidArgumentError */
export function checkedInteger(option: string, value: unknown, min: number, max: number): number {
  if (Number.isInteger(value) && (value as number) >= min && (value as number) <= max) {
    return value as number
  }
  throw new InvalidArgumentError(
    `${option} must be a whole number from ${min} to ${max}, not ${shown(value)}`,
  )
}
