import type { LockRequest, Operation, RequestStatus } from '../../engine/contract.js'
import type { Mailbox } from './mailbox.js'

/** Maximum number of threads that stay watched although no request of this thread waits behind them. */
const MAX_WATCHED = 8
/** Maximum number of sessions whose addresses are kept in memory although nothing waits behind them. */
const MAX_KNOWN = 1024

/** The part of a folder and its boxes that a {@link DeathWatch} uses. */
export interface Sessions {
  /** Whether it is the session of a box of this thread. */
  isLocal(session: string): boolean
  /** Returns the socket address of a session; undefined if the session has ended. */
  address(session: string): Promise<string | undefined>
  /** Returns the sessions of the thread that listens on this socket. */
  at(address: string): Promise<readonly string[]>
  /** Frees everything that a dead session held. */
  remove(session: string): Promise<void>
  /** Makes a request of a box of this thread check again which sessions are ahead of it. */
  wake(session: string, id: string): void
}

/** A waiting request of this thread. */
interface Waiting {
  readonly session: string
  /** The sessions ahead of it that are watched for it. */
  readonly ahead: readonly string[]
}

/**
 * Watches the threads whose sessions are ahead of waiting requests of this thread. When such a thread dies, frees
 * everything that its sessions held. A request far back in a queue watches only the sessions at both ends of the queue,
 * because otherwise each of N waiters would keep N connections. After all of these have left, only the regular visits
 * find a dead session between them: each thread checks the next one.
 */
export class DeathWatch {
  readonly #mailbox: Mailbox
  readonly #sessions: Sessions
  /** Functions that stop a watch, by the address of the watched thread. */
  readonly #watched = new Map<string, () => void>()
  /** The addresses of sessions, which never change. An address is undefined while it is looked up. */
  readonly #addresses = new Map<string, string | undefined>()
  /** The waiting requests of this thread, by ID. */
  readonly #behind = new Map<string, Waiting>()
  /** Promises by the address of a dead thread. They settle when everything that it held is free. */
  readonly #removals = new Map<string, Promise<void>>()
  #mostWatched = MAX_WATCHED
  #stopped = false

  constructor(mailbox: Mailbox, sessions: Sessions) {
    this.#mailbox = mailbox
    this.#sessions = sessions
  }

  /** Frees everything that the dead ones of these threads held. Makes one connection at a time. Never rejects. */
  async visit(addresses: readonly string[]): Promise<void> {
    for (const address of addresses) {
      if (this.#stopped) return
      if (address === this.#mailbox.address) continue
      if (await this.#mailbox.isDead(address)) await this.#removeThread(address)
    }
  }

  /** Processes the outcome of an operation of a box of this thread. */
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

  /** Forgets the requests of a box of this thread that has left. */
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
    if (this.#watched.size > MAX_WATCHED || this.#addresses.size > MAX_KNOWN) this.#unwatchUnused()
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
    // A request often waits behind the same threads as an earlier one, so watches are kept, up to a limit.
    if (this.#watched.size >= this.#mostWatched) this.#unwatchUnused()
    const stop = this.#mailbox.watch(address, () => void this.#removeThread(address))
    this.#watched.set(address, stop)
  }

  /** Stops watching the threads that no request waits for. */
  #unwatchUnused(): void {
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

  /** Frees everything that the sessions of a dead thread held. */
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
      // The locks of the sessions are freed when their leases expire.
    }
    this.#watched.delete(address)
  }

  /**
   * Frees everything that dead sessions held, and returns whether that has succeeded. Makes the requests behind them
   * check again. Never rejects.
   */
  async #remove(dead: readonly string[]): Promise<boolean> {
    if (this.#stopped) return false
    const removed = await Promise.allSettled(dead.map(session => this.#sessions.remove(session)))
    for (const session of dead) this.#addresses.delete(session)
    // mutant: dead-without-wake
    for (const [id, { session, ahead }] of [...this.#behind])
      if (ahead.some(each => dead.includes(each))) this.#sessions.wake(session, id)
    // Otherwise their locks are freed when the leases expire.
    // mutant: failed-removal-forgotten
    return removed.every(({ status }) => status === 'fulfilled')
  }
}
