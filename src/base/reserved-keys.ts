import { InvalidArgumentError, shown } from './errors.js'

const ELECTION = 'election:'
const LIMITER = 'limiter:'

/** The key of the lock that the leader of an election holds. */
export function electionKey(name: string): string {
  return `${ELECTION}${name}`
}

/** The key of the semaphore that limits the concurrency of a limiter. @param id see `limiterId`. */
export function concurrencyKey(id: string): string {
  return `${LIMITER}${id}`
}

/**
 * Checks that a key, or the name of a store, does not share a lock with an election or a limiter.
 * @throws InvalidArgumentError
 */
export function checkUnreserved(option: string, key: unknown): void {
  if (typeof key !== 'string') return
  const taken = reservedStart(key)
  if (taken !== undefined) {
    throw new InvalidArgumentError(
      `${option} must be a string that does not start with '${taken}', which is reserved for the locks of ${taken.slice(0, -1)}s, not ${shown(key)}`,
    )
  }
}

export function isReserved(key: string): boolean {
  return reservedStart(key) !== undefined
}

function reservedStart(key: string): string | undefined {
  return [ELECTION, LIMITER].find(start => key.startsWith(start))
}
