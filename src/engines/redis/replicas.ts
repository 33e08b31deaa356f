import type { Reply } from './clients/connection.js'
import type { Answered } from './clients/redis-link.js'

/** Time limit for replicas to confirm a write, in milliseconds. */
const PATIENCE = 1000

/** Why a write may be lost with the server. */
export interface Missed {
  readonly why: string
  readonly cause?: unknown
}

/** Checks whether enough replicas have the writes of servers. */
export class Replicas {
  readonly #least: number
  readonly #waits = new WeakMap<Answered['server'], Waits>()

  /** @param least minimum number of replicas. */
  constructor(least: number) {
    this.#least = least
  }

  /**
   * Waits until enough replicas have the writes of this call. Returns undefined if they have them, otherwise the
   * reason.
   */
  async missed({ server, epoch }: Answered): Promise<Missed | undefined> {
    const least = this.#least
    try {
      const reached = Number(await this.#ask(server))
      if (reached < least) return { why: `only ${reached} of ${least} replicas had it within ${PATIENCE} ms` }
      // `WAIT` covers only the writes of the connection over which it is sent.
      // mutant: replicas-of-another-connection
      if (server.epoch === epoch) return undefined
      return { why: `the connection broke before it was known whether ${least} replicas have it` }
    } catch (cause) {
      return { why: `it is not known whether ${least} replicas have it`, cause }
    }
  }

  /**
   * Sends `WAIT` to one server, one at a time. Until the server has answered, it executes nothing else that comes over
   * the connection. So all calls that need an answer meanwhile share the next `WAIT`.
   */
  #ask(server: Answered['server']): Promise<Reply> {
    const waits = this.#waits.get(server) ?? { current: Promise.resolve(), next: undefined }
    this.#waits.set(server, waits)
    waits.next ??= waits.current.then(() => {
      waits.next = undefined
      const answer = server.send(['WAIT', String(this.#least), String(PATIENCE)])
      waits.current = answer.catch(() => undefined)
      return answer
    })
    return waits.next
  }
}

interface Waits {
  /** Settles when the current `WAIT` is answered. */
  current: Promise<unknown>
  next: Promise<Reply> | undefined
}
