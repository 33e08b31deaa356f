import pg from 'pg'
import postgres from 'postgres'
import type { ClientLender } from '../../../src/index.js'

/** A client that a user of the package makes and passes to a box. */
export interface UserClient {
  readonly client: object
  close(): Promise<void>
}

/** A kind of client that the engine works over. */
export interface TestedClient {
  readonly name: string
  /** Whether several boxes can share one. */
  readonly isShared: boolean
  connect(url: string): Promise<UserClient>
}

/** The clients of a server that a user can pass. */
export const givenClients: readonly TestedClient[] = [
  {
    name: 'a Pool of pg',
    isShared: true,
    connect(url) {
      const pool = new pg.Pool({ connectionString: url, max: 20 })
      return Promise.resolve({ client: pool, close: () => pool.end() })
    },
  },
  {
    name: 'a lender of clients of pg',
    isShared: true,
    connect(url) {
      // Each box of a test keeps three clients.
      const pool = new pg.Pool({ connectionString: url, max: 60 })
      const lender: ClientLender = {
        connect: () => pool.connect(),
        release: (client: pg.PoolClient) => client.release(),
      }
      return Promise.resolve({ client: lender, close: () => pool.end() })
    },
  },
  {
    name: 'a Client of pg',
    isShared: false,
    async connect(url) {
      const client = new pg.Client(url)
      await client.connect()
      return { client, close: () => client.end() }
    },
  },
  {
    name: 'a sql of postgres',
    isShared: true,
    connect(url) {
      // With `fetch_types`, `postgres` leaves a rejection unhandled if the server goes away while a connection opens.
      const sql = postgres(url, { fetch_types: false })
      return Promise.resolve({ client: sql, close: () => sql.end({ timeout: 1 }) })
    },
  },
]
