import { setTimeout as pause } from 'node:timers/promises'
import { now } from './clock.js'
import { Connection, type ConnectionOptions } from './connection.js'
import type { Hello } from './handshake.js'
import { addressesOf, type Host } from './hosts.js'

/** What a session wants of its next connection. */
export interface Attempt {
  hello(): Hello
  /** Until when a connection is of use: clock time. */
  until(): number
  /** Is told of each server that could not be connected to. */
  failed(error: unknown): void
  /** Ends the attempt. */
  readonly signal: AbortSignal
}

/** The pauses between rounds: milliseconds. */
const FIRST_PAUSE = 20
const MAX_PAUSE = 1000
/** One server has so long to welcome a client, until one was silent for as long, and at the least: milliseconds. */
const FIRST_PATIENCE = 1000
const MIN_PATIENCE = 100
/** One server gets this part of the time that is left, so that there is time to report what was wrong. */
const PATIENT_FOR = 0.9

/**
 * Tries one server after the other, in rounds with longer and longer pauses, until one welcomes the client.
 * Gives undefined when the attempt was ended.
 */
export async function connectToAny(
  hosts: readonly Host[],
  options: ConnectionOptions,
  attempt: Attempt,
): Promise<Connection | undefined> {
  const { signal } = attempt
  let longest = FIRST_PATIENCE
  for (let round = 1; ; round *= 2) {
    let isTooShort = false
    const addresses = await addressesOf(hosts).catch((error: unknown) => {
      attempt.failed(error)
      return []
    })
    for (const address of addresses) {
      if (signal.aborted) return undefined
      // A server without a leader accepts connections and says nothing, while another one may have found its leader.
      const left = attempt.until() - now()
      const patience = Math.max(Math.min(left * PATIENT_FOR, longest), MIN_PATIENCE)
      const begun = now()
      try {
        return await Connection.open(address, attempt.hello(), patience, options)
      } catch (error) {
        attempt.failed(error)
        // A server that refuses at once, as before it is up, is no reason to wait longer for one that is silent.
        isTooShort ||= now() - begun >= patience
      }
    }
    if (isTooShort) longest *= 2
    // The random part keeps clients apart that come back together after an outage.
    const duration = Math.min(round * FIRST_PAUSE, MAX_PAUSE) * (0.5 + Math.random())
    await pause(duration, undefined, { ref: false, signal }).catch(() => undefined)
    if (signal.aborted) return undefined
  }
}
