import type { Clock } from '../../../base/clock.js'
import { answered } from './answered.js'
import type { LentConnection, PgConnection, PgPool } from './pg-client.js'
import { SqlError } from './sql-client.js'

/** Lends a `Client` of `pg` that belongs to the caller, and runs one statement at a time over it. */
export class PoolOfOne implements PgPool {
  readonly #client: PgConnection
  readonly #connection: LentConnection
  /** Why no further statement is sent; undefined while statements are sent. */
  #ending: string | undefined
  readonly #ended = (): void => {
    this.#ending = 'the client that was given is not connected any more'
  }

  constructor(client: PgConnection, clock: Clock) {
    this.#client = client
    let last: Promise<unknown> = Promise.resolve()
    this.#connection = {
      isCallers: true,
      query: statement => {
        const asked = answered(last, clock, false).then(() => {
          if (this.#ending !== undefined) throw unsent(this.#ending)
          return client.query(statement)
        })
        last = Promise.allSettled([last, asked]).then(ignore)
        return asked
      },
      on: client.on.bind(client),
      off: client.off.bind(client),
      release: () => undefined,
    }
    // The client reports its end only after the statement under way has failed.
    client.on('error', this.#ended)
    client.on('end', this.#ended)
  }

  connect(lent: Parameters<PgPool['connect']>[0]): void {
    if (this.#ending !== undefined) lent(unsent(this.#ending), undefined)
    else lent(undefined, this.#connection)
  }

  /** Leaves the client to the caller. */
  end(): void {
    this.#ending ??= 'the box was closed'
    this.#client.off('error', this.#ended)
    this.#client.off('end', this.#ended)
  }
}

function unsent(reason: string): SqlError {
  return new SqlError(reason, undefined, false, undefined)
}

function ignore(): void {
  // The failure is reported elsewhere.
}
