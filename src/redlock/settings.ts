import { InvalidArgumentError, shown } from '../base/errors.js'

/** Settings of redlock. Those of the retries determine how long to wait. */
export interface Settings {
  /** Number of retries; -1 or Infinity for no limit. Together with `retryDelay`, it limits the wait. */
  readonly retryCount: number
  /** Delay between retries, in milliseconds. */
  readonly retryDelay: number
  readonly retryJitter: number
  readonly driftFactor: number
  readonly automaticExtensionThreshold: number
}

const DEFAULTS: Settings = {
  driftFactor: 0.01,
  retryCount: 10,
  retryDelay: 200,
  retryJitter: 100,
  automaticExtensionThreshold: 500,
}

/** The time that a retry without a delay takes in redlock, in milliseconds: at least a round trip. */
const MIN_RETRY = 1

/**
 * Returns the given settings, with defaults for the others.
 * @throws InvalidArgumentError for a string, null or NaN in place of a number: it would give some other wait, often
 * none
 */
export function settingsOf(given: Partial<Settings> = {}, defaults = DEFAULTS): Settings {
  const present = Object.entries(given).filter(([, value]) => value !== undefined)
  const settings: Settings = { ...defaults, ...Object.fromEntries(present) }
  for (const name of ['retryCount', 'retryDelay', 'retryJitter'] as const) {
    const value = settings[name]
    if (typeof value !== 'number' || Number.isNaN(value))
      throw new InvalidArgumentError(`${name} must be a number, not ${shown(value)}`)
  }
  return settings
}

/** Returns how long the retries of redlock take on average, in milliseconds, besides the attempts themselves. */
export function waitOf({ retryCount, retryDelay, retryJitter }: Settings): number {
  if (retryCount === -1) return Infinity
  if (retryCount <= 0) return 0
  return Math.ceil(retryCount) * Math.max(averageDelay(retryDelay, Math.abs(retryJitter)), MIN_RETRY)
}

/** Returns the mean of max(0, x), where x is evenly distributed from `delay - jitter` to `delay + jitter`. */
function averageDelay(delay: number, jitter: number): number {
  if (delay >= jitter) return delay
  return Math.max(delay + jitter, 0) ** 2 / (4 * jitter) || 0
}

/** Returns when a lock of this duration expires, as redlock computes it: milliseconds of the wall clock. */
export function expirationOf(since: number, duration: number, { driftFactor }: Settings): number {
  return since + duration - Math.round(driftFactor * duration) - 2
}
