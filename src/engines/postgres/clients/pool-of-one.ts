import type { Clock } from '../../../base/clock.js'
import { answered } from './answered.js'
import type { LentConnection, PgConnection, PgPool } from './pg-client.js'

/** Lends a `Client` of `pg` that belongs to the caller, and runs one statement at a time over it. */
export class PoolOfOne implements PgPool {
  readonly #client: PgConnection
  readonly #connection: LentConnection
  #hasEnded = false
  readonly #ended = (): void => {
    this.#hasEnded = true
  }

  constructor(client: PgConnection, clock: Clock) {
    this.#client = client
    let last: Promise<unknown> = Promise.resolve()
    this.#connection = {
      isCallers: true,
      query: statement => {
        const asked = answered(last, clock, false).then(() => client.query(statement))
        const both = Promise.allSettled([last, asked])
        last = both
        return asked
      },
      on: client.on.bind(client),
      off: client.off.bind(client),
      release: () => undefined,
    }
    client.on('error', ignore)
    client.on('end', this.#ended)
  }

  connect(lent: Parameters<PgPool['connect']>[0]): void {
    if (this.#hasEnded) lent(new Error('the client that was given is not connected any more'), undefined)
    else lent(undefined, this.#connection)
  }

  /** Leaves the client to the caller. */
  end(): void {
    this.#client.off('error', ignore)
    this.#client.off('end', this.#ended)
  }
}

function ignore(): void {
  // The failure is reported elsewhere.
}
