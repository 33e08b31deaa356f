import type { Clock } from '../../../base/clock.js'
import { PgClient, type LentConnection, type PgConnection, type PgPool } from './pg-client.js'
import type { Listening } from './sql-client.js'

/** Runs statements over a `Client` of `pg` that belongs to the caller: one connection for everything. */
export class SinglePgClient extends PgClient {
  readonly #client: PgConnection
  readonly #ended: () => void

  constructor(name: string, client: PgConnection, clock: Clock) {
    const pool = new PoolOfOne(client)
    super(name, pool, clock)
    this.#client = client
    this.#ended = () => {
      pool.hasEnded = true
    }
    client.on('error', ignore)
    client.on('end', this.#ended)
  }

  override async listen(
    channel: string,
    onMessage: (message: string, channel: string) => void,
    onLost: () => void,
  ): Promise<Listening> {
    const onNotification = (message: { readonly channel: string; readonly payload?: string }): void => {
      if (message.channel === channel) onMessage(message.payload ?? '', channel)
    }
    const forget = (): void => {
      this.#client.off('notification', onNotification)
      this.#client.off('end', end)
    }
    const end = (): void => {
      forget()
      onLost()
    }
    this.#client.on('notification', onNotification)
    try {
      await this.run(`listen "${channel}"`)
      this.#client.on('end', end)
    } catch (error) {
      forget()
      throw error
    }
    return {
      query: this.query,
      run: text => this.run(text),
      stop: () => {
        forget()
        return this.run(`unlisten "${channel}"`)
      },
    }
  }

  override close(): Promise<void> {
    this.#client.off('error', ignore)
    this.#client.off('end', this.#ended)
    return super.close()
  }
}

/** Lends the connection to one user after another. */
class PoolOfOne implements PgPool {
  readonly #client: PgConnection
  hasEnded = false
  /** Resolves when the connection was returned and has replied to everything. */
  #free: Promise<unknown> = Promise.resolve()

  constructor(client: PgConnection) {
    this.#client = client
  }

  connect(lent: Parameters<PgPool['connect']>[0]): void {
    this.#lend().then(
      connection => lent(undefined, connection),
      (error: unknown) => lent(error as Error, undefined),
    )
  }

  async #lend(): Promise<LentConnection> {
    const client = this.#client
    const before = this.#free
    let last: Promise<unknown> = Promise.resolve()
    let free!: (answered: Promise<unknown>) => void
    this.#free = new Promise(resolve => (free = resolve))
    await before
    if (this.hasEnded) {
      free(last)
      throw new Error('the client that was given is not connected any more')
    }
    return {
      isKnown: true,
      query: statement => {
        const asked = client.query(statement)
        last = asked.catch(ignore)
        return asked
      },
      on: client.on.bind(client),
      off: client.off.bind(client),
      // The caller keeps the client. A statement without a reply, and its transaction, may still be running.
      release: isBroken => free(isBroken ? last.then(() => client.query('rollback')).catch(ignore) : last),
    }
  }
}

function ignore(): void {
  // The failure is reported elsewhere.
}
