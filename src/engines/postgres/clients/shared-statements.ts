import type { Clock, Timer } from '../../../base/clock.js'
import { SqlError, type SqlClient } from './sql-client.js'

/** Maximum number of statements of one client at a time. It has a connection for each, and one for messages. */
const AT_ONCE = 4
/** Waiting time of a statement after which further clients are created, in milliseconds. */
const PATIENCE = 100
/**
 * Minimum duration of slow statements, in milliseconds. If statements are faster, the server is busy, and further
 * connections would not help.
 */
const SLOW = 25
/** Time after which a further idle client is closed, in milliseconds. */
const KEPT_FOR = 60_000
/** SQLSTATE: the server accepts no further connections. None are tried for this many milliseconds after it. */
const IS_FULL = '53300'
const FULL_FOR = 5000

interface Member {
  readonly client: SqlClient
  running: number
  /** Maximum number of statements at a time. */
  most: number
  closing?: Timer | undefined
}

interface Waiting {
  /** Clock time. */
  readonly since: number
  readonly start: (member: Member) => void
}

/**
 * Runs the statements of several boxes over the connections of one client. If they take long, because the server is
 * distant or rows are locked, statements of one box would make those of another wait. So further clients are created in
 * that case, up to one for each box. No box has fewer connections than it would have by itself.
 */
export class SharedStatements {
  readonly #make: () => Promise<SqlClient>
  readonly #clock: Clock
  readonly #members: Member[]
  /** The statements that wait, by their box; the next box comes first. */
  readonly #waiting = new Map<object, Waiting[]>()
  #boxes = 0
  #growing: Timer | undefined
  /** The clock time at which the last statement ended, and its duration in milliseconds. */
  #last = { at: 0, took: 0 }
  /** The clock time until which the server is expected to accept no further connections. */
  #fullUntil = 0
  #isClosed = false

  /** @param make makes further clients like the first one */
  constructor(first: SqlClient, make: () => Promise<SqlClient>, clock: Clock) {
    this.#make = make
    this.#clock = clock
    this.#members = [memberOf(first)]
  }

  set boxes(count: number) {
    this.#boxes = count
    this.#next()
  }

  /**
   * @param box boxes take turns, so that one with many statements delays no other
   * @param work runs one statement, or one transaction
   */
  run<T>(box: object, work: (client: SqlClient) => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const start = (member: Member): void => {
        const begun = this.#clock.now()
        member.running++
        member.closing?.cancel()
        work(member.client).then(
          result => {
            resolve(result)
            this.#ran(member, begun)
          },
          (error: unknown) => {
            if (this.#waitsAfter(error, member)) this.#waitingOf(box).unshift(waiting)
            else reject(error)
            this.#ran(member, begun)
          },
        )
      }
      const waiting = { since: this.#clock.now(), start }
      this.#waitingOf(box).push(waiting)
      this.#next()
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const closing = this.#members.map(({ client, closing }) => {
      closing?.cancel()
      return client.close()
    })
    // The closed clients reject the waiting statements.
    this.#next()
    await Promise.all(closing)
  }

  #next(): void {
    for (const [box, waiting] of this.#waiting) {
      const free = this.#members.find(({ running, most }) => running < most)
      const member = free ?? (this.#mayGrow() ? undefined : this.#leastBusy())
      if (!member) return this.#growLater()
      // The box becomes the last in turn.
      this.#waiting.delete(box)
      const { start } = waiting.shift()!
      if (waiting.length > 0) this.#waiting.set(box, waiting)
      start(member)
    }
    this.#growing?.cancel()
    this.#growing = undefined
  }

  #waitingOf(box: object): Waiting[] {
    const waiting = this.#waiting.get(box) ?? []
    this.#waiting.set(box, waiting)
    return waiting
  }

  #mayGrow(): boolean {
    return !this.#isClosed && this.#members.length < this.#boxes
  }

  #leastBusy(): Member {
    return this.#members.reduce((least, each) => (each.running < least.running ? each : least))
  }

  #ran(member: Member, begun: number): void {
    const at = this.#clock.now()
    this.#last = { at, took: at - begun }
    member.running--
    if (member.running === 0 && member !== this.#members[0] && !this.#isClosed)
      member.closing = this.#clock.after(KEPT_FOR, () => this.#drop(member), false)
    this.#next()
  }

  /** Whether a statement waits until another ends, because the server had no connection for it. */
  #waitsAfter(error: unknown, member: Member): boolean {
    const others = member.running - 1
    const isFull = error instanceof SqlError && error.code === IS_FULL
    if (!isFull || !this.#mayGrow() || (others === 0 && member === this.#members[0])) return false
    member.most = others
    this.#fullUntil = this.#clock.now() + FULL_FOR
    const restore = (): void => {
      member.most = AT_ONCE
      this.#next()
    }
    this.#clock.after(FULL_FOR, restore, false)
    return true
  }

  #drop(member: Member): void {
    this.#members.splice(this.#members.indexOf(member), 1)
    member.client.close().catch(() => undefined)
  }

  #growLater(): void {
    this.#growing ??= this.#clock.after(
      PATIENCE,
      () => {
        // After a stall of the process, replies that have arrived are read first.
        this.#growing = this.#clock.after(1, () => void this.#grow(), true)
      },
      true,
    )
  }

  async #grow(): Promise<void> {
    const now = this.#clock.now()
    const all = [...this.#waiting.values()]
    const isLate = all.some(([first]) => now - first!.since >= PATIENCE)
    const { at, took } = this.#last
    const isSlow = took >= SLOW || now - at >= SLOW
    if (isLate && isSlow && now >= this.#fullUntil) {
      const count = all.reduce((sum, { length }) => sum + length, 0)
      const { length } = this.#members
      // At most doubles the number of clients: the first new ones may be enough.
      const wanted = Math.min(length, this.#boxes - length, Math.ceil(count / AT_ONCE))
      await Promise.all(Array.from({ length: wanted }, () => this.#add()))
    }
    this.#growing = undefined
    this.#next()
  }

  async #add(): Promise<void> {
    const client = await this.#make().catch(() => undefined)
    if (client && this.#mayGrow()) this.#members.push(memberOf(client))
    else client?.close().catch(() => undefined)
  }
}

function memberOf(client: SqlClient): Member {
  return { client, running: 0, most: AT_ONCE }
}
