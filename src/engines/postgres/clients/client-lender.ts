import type { Clock } from '../../../clock.js'
import { answered } from './answered.js'
import type { LentConnection, PgConnection, PgPool } from './pg-client.js'

/** Lends clients of `pg` out of a pool that the caller can't pass, because a package hides it. */
export interface ClientLender {
  /** Returns a connected `Client` of `pg`. Nobody else uses it until it is released. */
  connect(): PromiseLike<object>
  /** Takes a client back. If the client is broken, the box has ended it, and the pool must not lend it again. */
  release(client: never): unknown
}

interface LentClient extends PgConnection {
  unref(): void
  end(): Promise<void>
}

/** The connections of a lender, as a pool of `pg` lends them. */
export class LenderPool implements PgPool {
  readonly #lender: ClientLender
  readonly #clock: Clock

  constructor(lender: ClientLender, clock: Clock) {
    this.#lender = lender
    this.#clock = clock
  }

  connect(lent: Parameters<PgPool['connect']>[0]): void {
    this.#connect().then(
      connection => lent(undefined, connection),
      (error: unknown) => lent(error as Error, undefined),
    )
  }

  async #connect(): Promise<LentConnection> {
    const client = (await this.#lender.connect()) as LentClient
    return {
      query: statement => client.query(statement),
      on: client.on.bind(client),
      off: client.off.bind(client),
      unref: () => client.unref(),
      release: isBroken => void this.#release(client, isBroken === true).catch(ignore),
    }
  }

  async #release(client: LentClient, isBroken: boolean): Promise<void> {
    if (isBroken) {
      client.on('error', ignore)
      // Pools recognize an ended client by its event `end`.
      await answered(client.end(), this.#clock, false).catch(ignore)
    }
    await this.#lender.release(client as never)
  }
}

function ignore(): void {
  // The client has ended, or is the lender's to end.
}
