import type { Clock } from '../../../base/clock.js'
import { answered } from './answered.js'
import type { LentConnection, PgConnection, PgPool } from './pg-client.js'

/** Lends clients of `pg` out of a pool that the caller can't pass, because a package hides it. */
export interface ClientLender {
  /** Returns a connected `Client` of `pg`. Only the box uses it until it is released. */
  connect(): PromiseLike<object>
  /** Takes a client back. If the client is broken, the box has ended it, and the pool must not lend it again. */
  release(client: never): unknown
}

interface LentClient extends PgConnection {
  unref(): void
  end(): Promise<void>
}

type Waiting = Parameters<PgPool['connect']>[0]

/** Number of connections: one for messages, and two for statements. */
const KEPT = 3

/**
 * Connections of a lender, as a pool of `pg` lends them. They are kept until they break or {@link end} is called, so an
 * open box never waits until the application returns a connection, unless all of its own have broken.
 */
export class LenderPool implements PgPool {
  readonly #lender: ClientLender
  readonly #clock: Clock
  readonly #free: LentConnection[] = []
  readonly #waiting: Waiting[] = []
  /** Number of connections that were borrowed from the lender or requested from it. */
  #count = 0
  #hasEnded = false

  constructor(lender: ClientLender, clock: Clock) {
    this.#lender = lender
    this.#clock = clock
  }

  connect(waiting: Waiting): void {
    this.#waiting.push(waiting)
    this.#serve()
  }

  /** Returns all connections when they are no longer used. */
  end(): void {
    this.#hasEnded = true
    for (const connection of this.#free.splice(0)) connection.release()
  }

  #serve(): void {
    while (this.#free.length > 0 && this.#waiting.length > 0)
      this.#waiting.shift()!(undefined, this.#free.shift())
    for (; this.#count < KEPT && !this.#hasEnded; this.#count++) void this.#borrow()
  }

  async #borrow(): Promise<void> {
    try {
      this.#keep((await this.#lender.connect()) as LentClient)
    } catch (error) {
      this.#count--
      // Otherwise the waiting callers get connections that are in use now.
      if (this.#count === 0) for (const waiting of this.#waiting.splice(0)) waiting(error as Error, undefined)
    }
  }

  #keep(client: LentClient): void {
    let isBroken = false
    const connection: LentConnection = {
      query: statement => client.query(statement),
      on: client.on.bind(client),
      off: client.off.bind(client),
      unref: () => client.unref(),
      release: hasFailed => {
        isBroken ||= hasFailed === true
        if (isBroken || this.#hasEnded) void giveBack()
        else {
          this.#free.push(connection)
          this.#serve()
        }
      },
    }
    const broken = (): void => {
      isBroken = true
      const place = this.#free.indexOf(connection)
      if (place >= 0) this.#free.splice(place, 1)[0]!.release()
    }
    const giveBack = async (): Promise<void> => {
      // Pools recognize an ended client by its event `end`.
      if (isBroken) await answered(client.end(), this.#clock, false).catch(ignore)
      client.off('error', broken)
      client.off('end', broken)
      this.#count--
      try {
        await this.#lender.release(client as never)
      } catch {
        // The client has ended, or the lender must end it.
      }
      this.#serve()
    }
    client.on('error', broken)
    client.on('end', broken)
    connection.release()
  }
}

function ignore(): void {
  // The server is unreachable, so the connection can't be ended properly.
}
