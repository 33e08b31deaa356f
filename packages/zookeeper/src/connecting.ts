import { setTimeout as pause } from 'node:timers/promises'
import { now } from './clock.js'
import { Connection, type ConnectionOptions } from './connection.js'
import type { Hello } from './handshake.js'
import { addressesOf, type Host } from './hosts.js'

/** Provides the data of a session for its next connection. */
export interface Attempt {
  hello(): Hello
  /** Returns the clock time until which a connection is useful. */
  until(): number
  /** Called for each server that could not be connected to. */
  onFailure(error: unknown): void
  /** Ends the attempt. */
  readonly signal: AbortSignal
}

/** The pauses between rounds, in milliseconds. */
const FIRST_PAUSE = 20
const MAX_PAUSE = 1000
/**
 * Maximum time until a server welcomes the client in the first round, and the minimum of this time, in milliseconds.
 * The maximum doubles after a round in which a server used it up.
 */
const FIRST_TIMEOUT = 1000
const MIN_TIMEOUT = 100
/** The fraction of the remaining time that one server may use. The rest is for reporting the failure. */
const TIMEOUT_FRACTION = 0.9

/**
 * Tries one server after another, in rounds with increasing pauses, until one welcomes the client. Returns undefined if
 * the attempt was ended.
 */
export async function connectToAny(
  hosts: readonly Host[],
  options: ConnectionOptions,
  attempt: Attempt,
): Promise<Connection | undefined> {
  const { signal } = attempt
  let max = FIRST_TIMEOUT
  for (let round = 1; ; round *= 2) {
    let isTooShort = false
    const addresses = await addressesOf(hosts).catch((error: unknown) => {
      attempt.onFailure(error)
      return []
    })
    for (const address of addresses) {
      if (signal.aborted) return undefined
      // A server without a leader accepts connections and stays silent, while another one may have found its leader.
      const left = attempt.until() - now()
      const timeout = Math.max(Math.min(left * TIMEOUT_FRACTION, max), MIN_TIMEOUT)
      const begun = now()
      try {
        return await Connection.open(address, attempt.hello(), timeout, options)
      } catch (error) {
        attempt.onFailure(error)
        // A server that refuses at once, for example while it starts, is no reason to wait longer for a silent one.
        isTooShort ||= now() - begun >= timeout
      }
    }
    if (isTooShort) max *= 2
    // The random part spreads clients that reconnect after an outage.
    const duration = Math.min(round * FIRST_PAUSE, MAX_PAUSE) * (0.5 + Math.random())
    await pause(duration, undefined, { ref: false, signal }).catch(() => undefined)
    if (signal.aborted) return undefined
  }
}
