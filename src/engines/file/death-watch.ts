import type { LockRequest, Operation, RequestStatus } from '../../engine/contract.js'
import type { Mailbox } from './mailbox.js'

/** Up to this number of sessions stay watched although no request of this box waits behind them. */
const MAX_WATCHED = 8

/** What a {@link DeathWatch} needs of the engine. */
export interface Sessions {
  /** The session of this box. */
  readonly own: string
  /** The socket by which a session is reached; undefined for a session that is not there any more. */
  address(session: string): Promise<string | undefined>
  /** The sessions that are reached by a socket. */
  at(address: string): Promise<readonly string[]>
  /** Frees all that a dead session had. */
  remove(session: string): Promise<void>
  /** Lets an own request look again which sessions are before it. */
  wake(id: string): void
}

/**
 * Watches the sessions that own requests wait for, and frees what a session held as soon as its process is dead. A
 * request far behind in a queue watches those at its ends only, or each of N waiters would keep N connections. If all of
 * these have left, the visit of the next session, which each box makes, finds a dead one.
 */
export class DeathWatch {
  readonly #mailbox: Mailbox
  readonly #sessions: Sessions
  /** By session: what ends the watch over it. */
  readonly #watched = new Map<string, () => void>()
  /** By own request that waits: the sessions before it that are watched for it. */
  readonly #behind = new Map<string, readonly string[]>()
  #mostWatched = MAX_WATCHED
  #stopped = false

  constructor(mailbox: Mailbox, sessions: Sessions) {
    this.#mailbox = mailbox
    this.#sessions = sessions
  }

  /** Frees what the dead of these sessions had. One connection at a time is made. Never rejects. */
  async visit(sessions: ReadonlyMap<string, string>): Promise<void> {
    const visited = new Set([this.#mailbox.address])
    for (const [session, address] of sessions) {
      if (this.#stopped) return
      if (visited.has(address)) continue
      visited.add(address)
      if (await this.#mailbox.isDead(address)) await this.#remove(session, address)
    }
  }

  /** Takes note of the outcome of an own request. */
  note(operation: Operation, outcome: unknown): void {
    switch (operation.type) {
      case 'enqueue':
      case 'checkIn':
        return this.#noteStatus(operation.request, outcome as RequestStatus)
      case 'extendOrYield':
        return this.#noteStatus(operation.next, outcome as RequestStatus)
      case 'cancel':
      case 'release':
        return this.#forget(operation.request.id)
      default:
    }
  }

  stop(): void {
    this.#stopped = true
    for (const stop of this.#watched.values()) stop()
  }

  #noteStatus({ id }: LockRequest, status: RequestStatus): void {
    if (status.state !== 'queued') return this.#forget(id)
    this.#behind.set(id, status.sessionsAhead)
    for (const session of status.sessionsAhead) {
      if (session !== this.#sessions.own && !this.#watched.has(session)) this.#watch(session)
    }
  }

  #forget(id: string): void {
    this.#behind.delete(id)
    if (this.#behind.size === 0 && this.#watched.size > MAX_WATCHED) this.#lookAway()
  }

  #watch(session: string): void {
    // Boxes that met once will meet again, so watches are kept, up to a limit.
    if (this.#watched.size >= this.#mostWatched) this.#lookAway()
    const pending = (): void => undefined
    this.#watched.set(session, pending)
    const start = (address: string | undefined): void => {
      if (this.#stopped || this.#watched.get(session) !== pending) return
      if (address === undefined) void this.#remove(session, undefined)
      else if (address !== this.#mailbox.address)
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
    this.#mostWatched = Math.max(MAX_WATCHED, 2 * this.#watched.size)
  }

  /** Frees all that a dead session had, and the others of its thread. The requests that waited behind them look again. */
  async #remove(session: string, address: string | undefined): Promise<void> {
    const dead = new Set([session])
    this.#watched.delete(session)
    if (this.#stopped) return
    try {
      if (address !== undefined) for (const other of await this.#sessions.at(address)) dead.add(other)
      await Promise.all([...dead].map(each => this.#sessions.remove(each)))
      if (address !== undefined) this.#mailbox.remove(address)
    } catch {
      // What the sessions had is free at the end of its leases.
    }
    for (const each of dead) this.#watched.delete(each)
    for (const [id, behind] of [...this.#behind]) {
      if (behind.some(each => dead.has(each))) this.#sessions.wake(id)
    }
  }
}
