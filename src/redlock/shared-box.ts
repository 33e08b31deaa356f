import type { EventEmitter } from 'node:events'
import { open, type Box, type CloseOptions, type Grant } from '../index.js'
import type { Timer } from '../base/clock.js'
import type { RedlockClient } from './client.js'

export interface Held {
  readonly grant: Grant
  /** The lock that `acquire` or the last `extend` returned. */
  lock: { expiration: number }
  end: Timer
}

/** The box that all instances with the same clients share, because programs may create an instance for each request. */
export class SharedBox {
  /** The held grants, by their value in Redis. */
  readonly held = new Map<string, Held>()
  readonly #clients: ReadonlySet<RedlockClient>
  #box: Promise<Box> | undefined

  constructor(clients: ReadonlySet<RedlockClient>) {
    this.#clients = clients
  }

  isOf(clients: ReadonlySet<RedlockClient>): boolean {
    return this.#clients.size === clients.size && [...clients].every(client => this.#clients.has(client))
  }

  opened(): Promise<Box> {
    return (this.#box ??= this.#open())
  }

  async close(options?: CloseOptions): Promise<void> {
    // The caller that opens the box gets the error, if that fails.
    const opening = this.#box?.catch(() => undefined)
    this.#box = undefined
    const box = await opening
    await box?.close(options)
  }

  async #open(): Promise<Box> {
    const [first, ...others] = this.#clients
    try {
      const given = others.length === 0 ? { redis: first! } : { redisQuorum: [...this.#clients] }
      // A routine of redlock may leave a call behind that waits for the lock of the routine itself.
      const box = await open(given, { detectDeadlocks: false })
      this.#closeWithClients()
      return box
    } catch (error) {
      // The next call tries again.
      this.#box = undefined
      throw error
    }
  }

  /** Closes the box, which has connections of its own, once the program has closed all clients. */
  #closeWithClients(): void {
    let left = this.#clients.size
    const ended = (): void => {
      if (--left === 0) this.close({ drain: true }).catch(() => undefined)
    }
    for (const client of this.#clients) (client as unknown as EventEmitter).once('end', ended)
  }
}

/** The boxes, by their first client. */
const boxes = new WeakMap<RedlockClient, SharedBox[]>()

export function sharedBox(clients: ReadonlySet<RedlockClient>): SharedBox {
  const [first] = clients
  const known = boxes.get(first!) ?? []
  boxes.set(first!, known)
  let shared = known.find(box => box.isOf(clients))
  if (!shared) known.push((shared = new SharedBox(clients)))
  return shared
}
