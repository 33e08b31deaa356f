import { setTimeout as pause } from 'node:timers/promises'
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import type { LockLibrary } from './locker.js'
import { toldAddress } from './address-file.js'
import { postgresSupport } from './postgres-server.js'

/** Maximum number of connections of a process, and so of tasks that hold or want a lock. */
const CONNECTIONS = 64
/** Interval between attempts to acquire a held lock, in milliseconds. */
const POLL = 10

interface Statement {
  readonly name: string
  readonly text: string
}

const lock: Statement = { name: 'lock', text: 'select pg_advisory_lock(hashtext($1))' }
const tryLock: Statement = { name: 'try', text: 'select pg_try_advisory_lock(hashtext($1)) as taken' }
const unlock: Statement = { name: 'unlock', text: 'select pg_advisory_unlock(hashtext($1))' }
const lockWithin: Statement = { name: 'within', text: 'select pg_advisory_xact_lock(hashtext($1))' }
const row: Statement = { name: 'row', text: 'select 1 from locked where key = $1 for update' }

/**
 * A library of statements with pg.
 * @param take acquires the lock on a connection.
 * @param give releases it.
 */
function overPg(
  name: string,
  take: (client: pg.PoolClient, key: string) => Promise<unknown>,
  give: (client: pg.PoolClient, key: string) => Promise<unknown>,
): LockLibrary {
  return {
    name,
    support: postgresSupport,
    async open(folder, keys) {
      const pool = new pg.Pool({ connectionString: await toldAddress(folder), max: CONNECTIONS })
      await pool.query('create table if not exists locked (key text primary key)').catch(() => undefined)
      for (const key of keys) await pool.query('insert into locked values ($1) on conflict do nothing', [key])
      return {
        async lock(key) {
          const client = await pool.connect()
          await take(client, key)
          return {
            async unlock() {
              await give(client, key)
              client.release()
            },
          }
        },
        close: () => pool.end(),
      }
    },
  }
}

const released = (client: pg.PoolClient, key: string): Promise<unknown> =>
  client.query({ ...unlock, values: [key] })
const committed = (client: pg.PoolClient): Promise<unknown> => client.query('commit')

const takeRow: Statement = {
  name: 'take',
  text: 'update held set token = token + 1, owner = $2 where key = $1 and owner is null returning token',
}
const freeRow: Statement = { name: 'free', text: 'update held set owner = null where key = $1' }

/** The minimum for a stored lock with an owner and a token: two updates, which do not wait for the disk. */
export const twoUpdates: LockLibrary = {
  name: 'two updates with owner and token, not synchronous',
  support: postgresSupport,
  async open(folder, keys) {
    const client = new pg.Client({ connectionString: await toldAddress(folder) })
    await client.connect()
    await client.query('set synchronous_commit to off')
    await client
      .query(
        'create table if not exists held (key text primary key, token bigint, owner text) with (fillfactor = 50)',
      )
      .catch(() => undefined)
    for (const key of keys)
      await client.query('insert into held values ($1, 0) on conflict do nothing', [key])
    const owner = randomUUID()
    return {
      async lock(key) {
        const attempt = () => client.query<{ token: string }>({ ...takeRow, values: [key, owner] })
        let { rows } = await attempt()
        for (; rows.length === 0; { rows } = await attempt()) await pause(POLL)
        return {
          token: BigInt(rows[0]!.token),
          async unlock() {
            await client.query({ ...freeRow, values: [key] })
          },
        }
      },
      close: () => client.end(),
    }
  },
}

/** An advisory lock of a session. It waits in the server, and writes nothing. */
export const advisory = overPg(
  'pg_advisory_lock',
  (client, key) => client.query({ ...lock, values: [key] }),
  released,
)

/** The same, with attempts at intervals. */
export const polledAdvisory = overPg(
  `pg_try_advisory_lock every ${POLL} ms`,
  async (client, key) => {
    const taken = async (): Promise<boolean> =>
      (await client.query<{ taken: boolean }>({ ...tryLock, values: [key] })).rows[0]!.taken
    while (!(await taken())) await pause(POLL)
  },
  released,
)

/** An advisory lock of a transaction that stays open while the lock is held. */
export const advisoryWithin = overPg(
  'pg_advisory_xact_lock in an open transaction',
  async (client, key) => {
    await client.query('begin')
    await client.query({ ...lockWithin, values: [key] })
  },
  committed,
)

/** A row that an open transaction has locked. */
export const rowLock = overPg(
  'select for update in an open transaction',
  async (client, key) => {
    await client.query('begin')
    await client.query({ ...row, values: [key] })
  },
  committed,
)
