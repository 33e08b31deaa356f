import { InvalidArgumentError, shown } from './errors.js'

/** A length of time: milliseconds as a number, or a string such as `'250ms'`, `'5s'`, `'2m'`, `'1h'`, `'1d'`. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

const MILLISECONDS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const MAX_DURATION = 2 ** 31 - 1

/**
 * Converts a duration to milliseconds.
 * @throws InvalidArgumentError that names the option, if the value is not a duration of 1 ms to 24 days
 */
export function milliseconds(option: string, value: unknown): number {
  const [, count, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(String(value)) ?? []
  const parsed = typeof value === 'number' ? value : Number(count) * MILLISECONDS[unit ?? 'ms']!
  if (parsed >= 1 && parsed <= MAX_DURATION) return parsed
  throw new InvalidArgumentError(
    `${option} must be from 1 to ${MAX_DURATION} milliseconds, or a string like '5s' (ms, s, m, h, d), not ${shown(value)}`,
  )
}
