import type { LockRequest, Operation, RequestStatus } from '../../engine/contract.js'
import type { Mailbox } from './mailbox.js'

/** Up to this number of threads stay watched although no request of this one waits behind them. */
const MAX_WATCHED = 8
/** Maximum number of sessions whose addresses are kept in memory although nothing waits behind them. */
const MAX_KNOWN = 1024

/** What a {@link DeathWatch} needs of the folder and of its boxes. */
export interface Sessions {
  /** Whether it is the session of a box of this thread. */
  isLocal(session: string): boolean
  /** The socket by which a session is reached; undefined for a session that is not there any more. */
  address(session: string): Promise<string | undefined>
  /** The sessions that are reached by a socket. */
  at(address: string): Promise<readonly string[]>
  /** Frees all that a dead session had. */
  remove(session: string): Promise<void>
  /** Lets a request of a box of this thread look again which sessions are before it. */
  wake(session: string, id: string): void
}

/** A request of this thread that waits. */
interface Waiting {
  readonly session: string
  /** The sessions before it that are watched for it. */
  readonly ahead: readonly string[]
}

/**
 * Watches the threads whose sessions requests of this thread wait for, and frees what these sessions held as soon as
 * the process is dead. A request far behind in a queue watches those at its ends only, or each of N waiters would keep
 * N connections. If all of these have left, the visit of the next thread, which each thread makes, finds a dead one.
 */
export class DeathWatch {
  readonly #mailbox: Mailbox
  readonly #sessions: Sessions
  /** By the address of a thread: what ends the watch over it. */
  readonly #watched = new Map<string, () => void>()
  /** The addresses of sessions, which never change; undefined while it is looked up. */
  readonly #addresses = new Map<string, string | undefined>()
  /** The requests of this thread that wait, by ID. */
  readonly #behind = new Map<string, Waiting>()
  /** By the address of a dead thread: settles when all that it had is free. */
  readonly #removals = new Map<string, Promise<void>>()
  #mostWatched = MAX_WATCHED
  #stopped = false

  constructor(mailbox: Mailbox, sessions: Sessions) {
    this.#mailbox = mailbox
    this.#sessions = sessions
  }

  /** Frees what the dead of these threads had. One connection at a time is made. Never rejects. */
  async visit(addresses: readonly string[]): Promise<void> {
    for (const address of addresses) {
      if (this.#stopped) return
      if (address === this.#mailbox.address) continue
      if (await this.#mailbox.isDead(address)) await this.#removeThread(address)
    }
  }

  /** Takes note of the outcome of an operation of a box of this thread. */
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

  /** A box of this thread has left: none of its requests waits any more. */
  left(session: string): void {
    // mutant: left-box-waits
    for (const [id, waiting] of [...this.#behind]) if (waiting.session === session) this.#forget(id)
  }

  stop(): void {
    this.#stopped = true
    for (const stop of this.#watched.values()) stop()
  }

  #noteStatus({ id, session }: LockRequest, status: RequestStatus): void {
    if (status.state !== 'queued') return this.#forget(id)
    this.#behind.set(id, { session, ahead: status.sessionsAhead })
    for (const other of status.sessionsAhead) {
      if (this.#sessions.isLocal(other)) continue
      const address = this.#addresses.get(other)
      if (address !== undefined) this.#watch(address)
      else if (!this.#addresses.has(other)) this.#lookUp(other)
    }
  }

  #forget(id: string): void {
    this.#behind.delete(id)
    if (this.#behind.size > 0) return
    if (this.#watched.size > MAX_WATCHED || this.#addresses.size > MAX_KNOWN) this.#lookAway()
  }

  #lookUp(session: string): void {
    this.#addresses.set(session, undefined)
    const found = (address: string | undefined): void => {
      if (this.#stopped) return
      if (address === undefined) void this.#remove([session])
      else {
        this.#addresses.set(session, address)
        this.#watch(address)
      }
    }
    this.#sessions.address(session).then(found, () => this.#addresses.delete(session))
  }

  #watch(address: string): void {
    if (this.#stopped || this.#watched.has(address) || address === this.#mailbox.address) return
    // Boxes that met once will meet again, so watches are kept, up to a limit.
    if (this.#watched.size >= this.#mostWatched) this.#lookAway()
    this.#watched.set(
      address,
      this.#mailbox.watch(address, () => void this.#removeThread(address)),
    )
  }

  /** Stops watching the threads that no request waits for. */
  #lookAway(): void {
    const needed = new Set([...this.#behind.values()].flatMap(({ ahead }) => ahead))
    const watched = new Set<string | undefined>()
    for (const [session, address] of this.#addresses) {
      if (needed.has(session)) watched.add(address)
      else if (this.#addresses.size > MAX_KNOWN) this.#addresses.delete(session)
    }
    for (const [address, stop] of this.#watched) {
      if (watched.has(address)) continue
      stop()
      this.#watched.delete(address)
    }
    this.#mostWatched = Math.max(MAX_WATCHED, 2 * this.#watched.size)
  }

  /** Frees all that the sessions of a dead thread had. */
  #removeThread(address: string): Promise<void> {
    let removal = this.#removals.get(address)
    if (!removal) {
      removal = this.#removeAllAt(address).finally(() => this.#removals.delete(address))
      this.#removals.set(address, removal)
    }
    return removal
  }

  async #removeAllAt(address: string): Promise<void> {
    const known = [...this.#addresses].filter(([, at]) => at === address).map(([session]) => session)
    try {
      const sessions = await this.#sessions.at(address)
      if (await this.#remove([...new Set([...known, ...sessions])])) this.#mailbox.remove(address)
    } catch {
      // What the sessions had is free at the end of its leases.
    }
    this.#watched.delete(address)
  }

  /**
   * Frees all that dead sessions had, and returns whether that is done. The requests that waited behind them look
   * again. Never rejects.
   */
  async #remove(dead: readonly string[]): Promise<boolean> {
    if (this.#stopped) return false
    const removed = await Promise.allSettled(dead.map(session => this.#sessions.remove(session)))
    for (const session of dead) this.#addresses.delete(session)
    // mutant: dead-without-wake
    for (const [id, { session, ahead }] of [...this.#behind])
      if (ahead.some(each => dead.includes(each))) this.#sessions.wake(session, id)
    // What could not be freed is free at the end of its leases.
    // mutant: failed-removal-forgotten
    return removed.every(({ status }) => status === 'fulfilled')
  }
}
