import { InvalidArgumentError, shown } from './errors.js'

/**
 * A duration: milliseconds as a number, or a string such as `'250ms'`, `'5s'`, `'2m'`, `'1h'`, `'1d'`. The number in a
 * string may be in any notation of JavaScript, with blanks around it.
 */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

const MILLISECONDS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const TEXT = /^(.*?)(ms|s|m|h|d)$/s

export interface DurationBounds {
  min: number
  max: number
}

/** @throws InvalidArgumentError when the value is not a duration, or out of bounds. */
export function milliseconds(option: string, value: unknown, bounds: DurationBounds): number {
  const parsed = typeof value === 'number' ? value : typeof value === 'string' ? parse(value) : NaN
  if (Number.isNaN(parsed)) {
    throw new InvalidArgumentError(
      `${option} must be milliseconds or a string like '5s' (ms, s, m, h, d), not ${shown(value)}`,
    )
  }
  if (parsed < bounds.min || parsed > bounds.max) {
    throw new InvalidArgumentError(
      `${option} must be ${bounds.max === Infinity ? `at least ${bounds.min} ms` : `from ${bounds.min} ms to ${bounds.max} ms`}, not ${shown(value)}`,
    )
  }
  return parsed
}

/** Whether a text is a duration, of any length. */
export function isDuration(text: string): boolean {
  return !Number.isNaN(parse(text))
}

function parse(text: string): number {
  const [, number = '', unit = ''] = TEXT.exec(text) ?? []
  // The type admits the numbers that `Number` reads.
  return number.trim() === '' || number.includes('Infinity') ? NaN : Number(number) * MILLISECONDS[unit]!
}

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** Formats milliseconds in at most two units: `450ms`, `12.3s`, `5m 3s`, `2h 10m`, `3d 4h`. */
export function shortDuration(milliseconds: number): string {
  const whole = Math.round(milliseconds)
  if (whole < SECOND) return `${whole}ms`
  // Not `60.0s`, but a minute.
  if (whole < MINUTE - 50) return `${(whole / SECOND).toFixed(1)}s`
  const seconds = Math.round(whole / SECOND) * SECOND
  if (seconds < HOUR) return pair(seconds, MINUTE, 'm', SECOND, 's')
  return seconds < DAY ? pair(seconds, HOUR, 'h', MINUTE, 'm') : pair(seconds, DAY, 'd', HOUR, 'h')
}

function pair(value: number, great: number, greatUnit: string, small: number, smallUnit: string): string {
  return `${Math.floor(value / great)}${greatUnit} ${Math.floor((value % great) / small)}${smallUnit}`
}
