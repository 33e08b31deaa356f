import type { Clock, Timer } from '../../clock.js'
import type { Operation, RequestStatus } from '../../engine/contract.js'
import type { Mailbox } from './mailbox.js'

/** How long a new box watches all other sessions, to find those whose process died before it came: milliseconds. */
const VISIT = 1000
/** Up to so many sessions stay watched although no request of this box waits behind them. */
const MOST_WATCHED = 64

/** What a {@link DeathWatch} needs of the engine. */
export interface Sessions {
  /** The session of this box. */
  readonly own: string
  /** The socket by which a session is reached; undefined for a session that is not there any more. */
  address(session: string): Promise<string | undefined>
  /** Frees all that a dead session had. */
  remove(session: string): Promise<void>
  /** Lets an own request look again which sessions are before it. */
  wake(id: string): void
}

/** Watches the sessions that own requests wait for, and frees what a session held as soon as its process is dead. */
export class DeathWatch {
  readonly #mailbox: Mailbox
  readonly #sessions: Sessions
  readonly #clock: Clock
  /** By session: what ends the watch over it. */
  readonly #watched = new Map<string, () => void>()
  /** By own request that waits: the sessions before it. */
  readonly #behind = new Map<string, readonly string[]>()
  #mostWatched = MOST_WATCHED
  #visit: Timer | undefined
  #stopped = false

  constructor(mailbox: Mailbox, sessions: Sessions, clock: Clock) {
    this.#mailbox = mailbox
    this.#sessions = sessions
    this.#clock = clock
  }

  /** Watches these sessions for a moment. */
  visit(sessions: readonly string[]): void {
    const others = sessions.filter(session => session !== this.#sessions.own)
    if (others.length === 0) return
    for (const session of others) this.#watch(session)
    this.#visit = this.#clock.after(VISIT, () => this.#lookAway(), false)
  }

  /** Takes note of what became of an own request. */
  note(operation: Operation, outcome: unknown): void {
    switch (operation.type) {
      case 'enqueue':
      case 'poll':
        return this.#noteStatus(operation.request.id, outcome as RequestStatus)
      case 'extendOrYield':
        return this.#noteStatus(operation.next.id, outcome as RequestStatus)
      case 'cancel':
      case 'release':
        this.#behind.delete(operation.request.id)
        return
      default:
    }
  }

  stop(): void {
    this.#stopped = true
    this.#visit?.cancel()
    for (const stop of this.#watched.values()) stop()
  }

  #noteStatus(id: string, status: RequestStatus): void {
    if (status.state !== 'queued') {
      this.#behind.delete(id)
      return
    }
    this.#behind.set(id, status.behind)
    for (const session of status.behind) {
      if (session !== this.#sessions.own && !this.#watched.has(session)) this.#watch(session)
    }
  }

  #watch(session: string): void {
    // Boxes that met once will meet again, so their connections are kept, up to a limit.
    if (this.#watched.size >= this.#mostWatched) this.#lookAway()
    this.#watched.set(session, () => undefined)
    const start = (address: string | undefined): void => {
      if (this.#stopped) return
      if (address === undefined) void this.#remove(session, undefined)
      else
        this.#watched.set(
          session,
          this.#mailbox.watch(address, () => void this.#remove(session, address)),
        )
    }
    this.#sessions.address(session).then(start, () => this.#watched.delete(session))
  }

  /** Stops watching the sessions that no own request waits for. */
  #lookAway(): void {
    const needed = new Set([...this.#behind.values()].flat())
    for (const [session, stop] of this.#watched) {
      if (needed.has(session)) continue
      stop()
      this.#watched.delete(session)
    }
    this.#mostWatched = Math.max(MOST_WATCHED, 2 * this.#watched.size)
  }

  /** Frees all that a dead session had. The requests that waited behind it look again. */
  async #remove(session: string, address: string | undefined): Promise<void> {
    this.#watched.delete(session)
    if (this.#stopped) return
    try {
      await this.#sessions.remove(session)
      if (address !== undefined) this.#mailbox.remove(address)
    } catch {
      // What the session had is free at the end of its leases.
    }
    for (const [id, behind] of [...this.#behind]) if (behind.includes(session)) this.#sessions.wake(id)
  }
}
