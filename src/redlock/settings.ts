import { InvalidArgumentError, shown } from '../base/errors.js'

/** How long to wait. The other settings of redlock are accepted, too. */
export interface Settings {
  /** Number of retries; -1 or Infinity for as long as it takes. Together with `retryDelay`, it limits the wait. */
  readonly retryCount: number
  /** Milliseconds. */
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

/** What a retry without a delay takes in redlock, in milliseconds: at least a round trip. */
const MIN_RETRY = 1

/**
 * Returns the settings with those that are given.
 * @throws InvalidArgumentError for a text, null or NaN in place of a number: its product would be some wait, often none
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

/** The mean of the greater of 0 and an even distribution around the delay. */
function averageDelay(delay: number, jitter: number): number {
  if (delay >= jitter) return delay
  return Math.max(delay + jitter, 0) ** 2 / (4 * jitter) || 0
}

/** When a lock of this duration ends, as redlock computes it: milliseconds of the wall clock. */
export function expirationOf(since: number, duration: number, { driftFactor }: Settings): number {
  return since + duration - Math.round(driftFactor * duration) - 2
}
