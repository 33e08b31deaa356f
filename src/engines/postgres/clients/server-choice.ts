import { endsConnection, SqlError, type Listening, type Query, type SqlClient } from './sql-client.js'

/** SQLSTATEs: the server is starting or stopping, or pg_hba.conf has no entry for this kind of connection. */
const FOR_NEXT = ['57P03', '28000']
/** Returns the only client, or one that chooses among several. @param clients one for each server, in the order to try */
export function chosenOf(name: string, clients: readonly SqlClient[]): SqlClient {
  return clients.length === 1 ? clients[0]! : new ServerChoice(name, clients)
}

/** Uses the first of several servers, or of several ways to connect to one, that is reachable and accepts writes. */
class ServerChoice implements SqlClient {
  readonly name: string
  readonly #clients: readonly SqlClient[]
  #current = 0
  #chosen: Promise<SqlClient> | undefined

  /** @param clients one for each server, in the order in which to try them */
  constructor(name: string, clients: readonly SqlClient[]) {
    this.name = name
    this.#clients = clients
  }

  readonly query: Query = (text, values) => this.#with(client => client.query(text, values))

  run(text: string): Promise<unknown> {
    return this.#with(client => client.run(text))
  }

  listen(...subscription: Parameters<SqlClient['listen']>): Promise<Listening> {
    return this.#with(client => client.listen(...subscription))
  }

  async close(): Promise<void> {
    await Promise.all(this.#clients.map(client => client.close()))
  }

  async #with<T>(work: (client: SqlClient) => Promise<T>): Promise<T> {
    const chosen = (this.#chosen ??= this.#choose())
    try {
      return await work(await chosen)
    } catch (error) {
      if (endsConnection(error) && this.#chosen === chosen) this.#chosen = undefined
      throw error
    }
  }

  /** Returns the first usable client. Starts with the one that was chosen last. */
  async #choose(): Promise<SqlClient> {
    const first = this.#current
    const failures: SqlError[] = []
    for (let tried = 0; tried < this.#clients.length; tried++) {
      const place = (first + tried) % this.#clients.length
      const client = this.#clients[place]!
      try {
        if ((await client.query('select pg_catalog.pg_is_in_recovery()::pg_catalog.text', [])) !== 'false')
          throw new SqlError('the server is a standby', undefined, false, undefined)
        this.#current = place
        return client
      } catch (error) {
        // A wrong password would be wrong for the next server, too.
        const { code } = error as SqlError
        if (code !== undefined && !FOR_NEXT.includes(code)) throw error
        failures.push(error as SqlError)
      }
    }
    const messages = new Set(failures.map(({ message }) => message))
    // No statement of the caller's was sent.
    throw new SqlError([...messages].join('; '), undefined, false, new AggregateError(failures))
  }
}
