import { answered } from './answered.js'
import type { Clock } from '../../../base/clock.js'
import { SharedStatements } from './shared-statements.js'
import { SqlError, type Listening, type Query, type SqlClient, type SqlStatements } from './sql-client.js'

interface Subscriber {
  readonly onMessage: (message: string, channel: string) => void
  readonly onLost: () => void
  /** Whether it has its {@link Listening}. Before that, its call to `listen` reports a loss. */
  isListening: boolean
}

/**
 * The connections of all boxes of a process that have the same place. They listen over one connection, because each
 * message wakes every connection that listens in the database. The last box closes the connections.
 */
class SharedClient {
  readonly #client: SqlClient
  readonly #statements: SharedStatements
  /** Statements for all boxes. Those of a single box end when it is closed. */
  readonly #ofAll: SqlStatements
  readonly #clock: Clock
  readonly #onClosed: () => void
  #boxes = 0
  #isClosed = false
  readonly #subscribers = new Map<string, Subscriber>()
  #connection: Promise<SharedConnection> | undefined
  /** The work that is running for all boxes that have asked for it. */
  #together: Promise<void> | undefined

  /** @param make makes further clients like `client` */
  constructor(client: SqlClient, make: () => Promise<SqlClient>, clock: Clock, onClosed: () => void) {
    this.#client = client
    this.#statements = new SharedStatements(client, make, clock)
    this.#ofAll = this.#over(work => this.#statements.run(this, work))
    this.#clock = clock
    this.#onClosed = onClosed
  }

  /** Returns the client for one more box; undefined if the last one has closed the connections. */
  use(): SqlClient | undefined {
    if (this.#isClosed) return undefined
    this.#statements.boxes = ++this.#boxes
    let closed: Promise<void> | undefined
    const box = {}
    return {
      ...this.#over(work =>
        closed ? Promise.reject(lost('the box was closed')) : this.#statements.run(box, work),
      ),
      ofAll: this.#ofAll,
      together: work => this.#doTogether(work),
      listen: (channel, onMessage, onLost) => this.#listen(channel, onMessage, onLost),
      close: () => (closed ??= this.#leave()),
    }
  }

  #over(run: <T>(work: (client: SqlClient) => Promise<T>) => Promise<T>): SqlStatements {
    return {
      name: this.#client.name,
      query: (text, values) => run(client => client.query(text, values)),
      run: text => run(client => client.run(text)),
    }
  }

  #doTogether(work: (statements: SqlStatements) => Promise<void>): Promise<void> {
    if (this.#together) return this.#together
    const done = work(this.#ofAll)
    const over = (): unknown => (this.#together = undefined)
    done.then(over, over)
    return (this.#together = done)
  }

  async #leave(): Promise<void> {
    this.#statements.boxes = --this.#boxes
    if (this.#boxes > 0) return
    this.#isClosed = true
    this.#onClosed()
    await this.#statements.close()
  }

  async #listen(channel: string, onMessage: Subscriber['onMessage'], onLost: () => void): Promise<Listening> {
    const subscriber: Subscriber = { onMessage, onLost, isListening: false }
    this.#subscribers.set(channel, subscriber)
    try {
      const isFirst = this.#connection === undefined
      const connection = await (this.#connection ??= this.#connect(channel))
      const run = (text: string): Promise<unknown> => this.#answered(connection, connection.run(text))
      // mutant: later-box-unheard
      if (!isFirst) await run(`listen "${channel}"`)
      // mutant: listens-over-lost-connection
      if (connection.isLost) throw lost('the connection was lost')
      subscriber.isListening = true
      return {
        query: connection.query,
        run,
        stop: isBroken => {
          const isKnown = this.#unsubscribe(channel, subscriber)
          if (isBroken) this.#drop(connection)
          else if (isKnown && !connection.isLost) {
            if (this.#subscribers.size === 0) this.#drop(connection)
            else run(`unlisten "${channel}"`).catch(() => undefined)
          }
          return Promise.resolve()
        },
      }
    } catch (error) {
      this.#unsubscribe(channel, subscriber)
      throw error
    }
  }

  #unsubscribe(channel: string, subscriber: Subscriber): boolean {
    return this.#subscribers.get(channel) === subscriber && this.#subscribers.delete(channel)
  }

  #connect(channel: string): Promise<SharedConnection> {
    let connection: SharedConnection | undefined
    const receive = (message: string, to: string): void => this.#subscribers.get(to)?.onMessage(message, to)
    const connecting = this.#client
      .listen(channel, receive, () => connection && this.#drop(connection))
      .then(listening => (connection = new SharedConnection(listening)))
    connecting.catch(() => {
      if (this.#connection === connecting) this.#connection = undefined
    })
    return connecting
  }

  #answered<T>(connection: SharedConnection, answer: Promise<T>): Promise<T> {
    return answered(answer, this.#clock, false, () => this.#drop(connection))
  }

  /** Ends a connection, and notifies those that listen over it. */
  #drop(connection: SharedConnection): void {
    if (connection.isLost) return
    connection.end()
    this.#connection = undefined
    for (const [channel, subscriber] of [...this.#subscribers]) {
      if (!subscriber.isListening) continue
      this.#subscribers.delete(channel)
      // mutant: lost-connection-unreported
      subscriber.onLost()
    }
  }
}

/**
 * The connection over which all boxes listen. It runs one statement at a time. It combines the requests that arrive
 * while it is busy into one statement, so that no box waits for the statements of all others.
 */
class SharedConnection {
  readonly #listening: Listening
  #last: Promise<unknown> = Promise.resolve()
  /** The replies to the requests that are sent next, by their text. */
  readonly #next = new Map<string, Promise<unknown>>()
  readonly #texts: string[] = []
  isLost = false

  constructor(listening: Listening) {
    this.#listening = listening
  }

  readonly query: Query = (text, values) =>
    this.#ask(JSON.stringify([text, values]), () => this.#listening.query(text, values))

  run(text: string): Promise<unknown> {
    this.#texts.push(text)
    return this.#ask('', () => this.#listening.run(this.#texts.splice(0).join(';')))
  }

  end(): void {
    this.isLost = true
    this.#listening.stop().catch(() => undefined)
  }

  #ask<T>(key: string, send: () => Promise<T>): Promise<T> {
    const waiting = this.#next.get(key)
    if (waiting) return waiting as Promise<T>
    const answer = this.#last.then(() => {
      this.#next.delete(key)
      return send()
    })
    this.#next.set(key, answer)
    this.#last = answer.catch(() => undefined)
    return answer
  }
}

function lost(message: string): SqlError {
  return new SqlError(message, undefined, false, undefined)
}

/** The shared clients of this process by their places. */
const shared = new Map<string, Promise<SharedClient>>()

/**
 * Returns a client that shares its connections with all other clients of this place.
 * @param place differs if connections can't be shared @param make connects to the place
 */
export async function sharedClient(
  place: string,
  make: () => Promise<SqlClient>,
  clock: Clock,
): Promise<SqlClient> {
  for (;;) {
    let making = shared.get(place)
    if (making === undefined) {
      const forget = (): unknown => shared.delete(place)
      making = make().then(client => new SharedClient(client, make, clock, forget))
      shared.set(place, making)
      making.catch(forget)
    }
    // If its last box was closed meanwhile, connects again.
    const client = (await making).use()
    if (client) return client
  }
}
