import { randomUUID } from 'node:crypto'
import { PGlite } from '@electric-sql/pglite'
import pg from 'pg'
import postgres from 'postgres'
import { afterAll, describe, expect, test } from 'vitest'
import { LostError, open, type Box, type SqlTransaction } from '../../src/index.js'
import { pause } from '../../packages/conformance/src/time.js'
import { startPostgres } from '../support/servers/postgres.js'
import { Tap } from '../support/postgres/tap.js'

const server = await startPostgres({ settings: { max_connections: '200' } })
afterAll(() => server.kill())

type Run = (text: string) => Promise<readonly object[]>

/** A caller's transaction: its client, and a function that runs its statements. */
interface Caller {
  readonly transaction: SqlTransaction
  readonly run: Run
}

/** Commits a transaction after running `work` in it. */
type Within = (url: string, work: (caller: Caller) => Promise<void>) => Promise<void>

const overPg: Within = async (url, work) => {
  const client = new pg.Client(url)
  client.on('error', () => undefined)
  await client.connect()
  try {
    await client.query('begin')
    await work({ transaction: client, run: async text => (await client.query<object>(text)).rows })
    await client.query('commit')
  } finally {
    await client.end()
  }
}

const overPostgres: Within = async (url, work) => {
  const sql = postgres(url, { max: 1 })
  try {
    await sql.begin(transaction => work({ transaction, run: text => transaction.unsafe(text) }))
  } finally {
    await sql.end({ timeout: 0 })
  }
}

/** Returns all settings in the caller's transaction. */
async function settings(run: Run): Promise<Record<string, string>> {
  // Runs a PL/pgSQL block, because the first one adds the settings of that language.
  await run('do $$ begin end $$')
  const rows = (await run('select name, setting from pg_settings order by name')) as {
    name: string
    setting: string
  }[]
  return Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))
}

/** Settings that a caller may have changed for its own transaction. */
const OWN = `
  set local synchronous_commit = on; set local lock_timeout = '7s'; set local statement_timeout = '50s';
  set local idle_in_transaction_session_timeout = '55s'; set local search_path = pg_catalog; set local timezone = 'Asia/Tokyo'`

/** Runs `step` in a caller's transaction, and expects all settings to be the same before and after it. */
async function unchanged(within: Within, url: string, own: string, step: (caller: Caller) => Promise<void>) {
  await within(url, async caller => {
    if (own !== '') await caller.run(own)
    const before = await settings(caller.run)
    await step(caller)
    expect(await settings(caller.run)).toEqual(before)
  })
}

/** Maximum number of packets that a caller's client sends in one call. */
const MAX_PACKETS = 8

/** Calls within a caller's transaction. Each call uses its own keys. */
const paths: readonly (readonly [string, (box: Box, caller: Caller) => Promise<void>])[] = [
  [
    'a fence of two keys',
    async (box, { transaction }) => {
      const grant = await box.mutex(randomUUID(), randomUUID()).acquire({ lease: '60s' })
      await grant.fence(transaction)
      await grant.release()
    },
  ],
  [
    'a fence that is refused',
    async (box, { transaction }) => {
      const grant = await box.mutex(randomUUID()).acquire({ lease: '60s' })
      await grant.release()
      await expect(grant.fence(transaction)).rejects.toThrow(LostError)
    },
  ],
  [
    'a transaction that changes what is there',
    async (box, { transaction }) => {
      const keys = [randomUUID(), randomUUID()]
      const store = box.store('s')
      for (const key of keys) await store.put(key, 1)
      await store.transaction(keys, tx => tx.delete(keys[0]!), { in: transaction, lease: '60s' })
    },
  ],
  [
    'a transaction with an id',
    async (box, { transaction }) => {
      const key = randomUUID()
      await box
        .store('s')
        .transaction([key], tx => tx.put(key, 1), { in: transaction, id: key, lease: '60s' })
    },
  ],
  [
    'a transaction whose function throws',
    async (box, { transaction }) => {
      const key = randomUUID()
      const failing = (): never => {
        throw new Error('of the function')
      }
      await expect(
        box.store('s').transaction([key], failing, { in: transaction, lease: '60s' }),
      ).rejects.toThrow('of the function')
    },
  ],
  [
    'a transaction that a watcher is notified of',
    async (box, { transaction }) => {
      const key = randomUUID()
      const stop = new AbortController()
      const watching = (async () => {
        for await (const _ of box.store('s').watch(key, stop.signal)) continue
      })().catch(() => undefined)
      await box.store('s').transaction([key], tx => tx.put(key, 1), { in: transaction, lease: '60s' })
      stop.abort()
      await watching
    },
  ],
]

const clients = [
  ['pg', overPg],
  ['postgres', overPostgres],
] as const

describe.concurrent.each(clients)('the settings of a caller’s transaction over %s', (_, within) => {
  test.each(paths)(
    'are unchanged, also when each packet takes 400 ms: %s',
    { timeout: 60_000 },
    async (_what, step) => {
      await using tap = await Tap.start(server.address.port)
      await using box = await open(server.url)
      await unchanged(within, server.url, OWN, caller => step(box, caller))
      await unchanged(within, tap.through(server.url), '', async caller => {
        tap.decide = () => 400
        await step(box, caller)
        tap.decide = () => 0
      })
    },
  )

  test('are unchanged when another transaction locked the keys', async () => {
    await using box = await open(server.url)
    const keys = [randomUUID(), randomUUID()]
    const put = async (caller: Caller, wait: number): Promise<void> => {
      await box.store('s').transaction(keys, tx => keys.forEach(key => tx.put(key, 1)), {
        in: caller.transaction,
        wait,
        lease: '60s',
      })
    }
    let next: Promise<void> | undefined
    await within(server.url, async first => {
      await put(first, 5000)
      next = unchanged(within, server.url, '', second => put(second, 20_000))
      next.catch(() => undefined)
      await pause(1000)
    })
    await next
  })
})

test(
  'what a caller commits outlives a crash, whichever two packets are late',
  { timeout: 120_000 },
  async () => {
    await using own = await startPostgres()
    await own.query('create table paid (id int primary key)')
    for (let late = 0; late < MAX_PACKETS; late++) {
      await using tap = await Tap.start(own.address.port)
      await using box = await open(own.url)
      await own.stopWriter()
      await overPg(tap.through(own.url), async ({ transaction, run }) => {
        await run(`insert into paid values (${late})`)
        let sent = 0
        tap.decide = ({ from }) => {
          if (from === 'client') sent++
          return from === 'client' && (sent === late || sent === late + 2) ? 400 : 0
        }
        await box
          .store('s')
          .transaction([`${late}`], tx => tx.put(`${late}`, late), { in: transaction, lease: '60s' })
        tap.decide = () => 0
      })
      await own.restart()
      await using again = await open(own.url)
      expect((await again.store('s').get(`${late}`))?.value).toBe(late)
      expect(await own.query(`select from paid where id = ${late}`)).toHaveLength(1)
    }
  },
)

test('statements of a box leave the settings of a PGlite and of a pool unchanged', async () => {
  const pglite = await PGlite.create()
  await using pool = server.pool({ max: 4 })
  const clients = [
    [pglite, async (text: string) => (await pglite.query<object>(text)).rows],
    [pool, async (text: string) => (await pool.query<object>(text)).rows],
  ] as const
  for (const [client, run] of clients) {
    const before = await settings(run)
    {
      await using box = await open({ postgres: client, schema: 'own' })
      await box.store('s').transaction(['a', 'b'], tx => tx.put('a', 1), { id: 'one' })
      await box.store('s').put('c', 1)
      await box.mutex('a', 'b').run(() => undefined)
    }
    for (let connection = 0; connection < 4; connection++) expect(await settings(run)).toEqual(before)
  }
  await pglite.close()
})
