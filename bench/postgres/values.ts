import pg from 'pg'
import { open } from 'signalbox'
import { now } from '../clock.js'
import type { Work } from '../work.js'
import { callers } from './callers.js'

const OWN = 'signalbox'
const PUTTERS = 32
const MOVERS = 64
const ACCOUNTS = 64

/** Creates a table like that of a store, used without Signalbox. The pool has a connection for each caller. */
async function byHand(url: string, max: number): Promise<pg.Pool> {
  const pool = new pg.Pool({ connectionString: url, max })
  await pool.query('create table stored (key text primary key, version bigint not null, value text not null)')
  return pool
}

const UPSERT = 'insert into stored values ($1, 1, $2) on conflict (key) do update'
const upsert = {
  name: 'upsert',
  text: `${UPSERT} set version = stored.version + 1, value = excluded.value returning version`,
}
const lock = {
  name: 'lock',
  text: 'select key, value from stored where key = any($1) order by key for update',
}

/** Writes of single values by callers that each have their own key. */
const puts: Work = {
  part: 'postgres',
  name: `values written by ${PUTTERS} callers, each with its own key`,
  seconds: 1,
  subjects: [
    callers(OWN, PUTTERS, async url => {
      const box = await open(url)
      const store = box.store('bench')
      return { do: caller => store.put(`key ${caller}`, now()), end: () => box.close() }
    }),
    callers('insert on conflict, by pg', PUTTERS, async url => {
      const pool = await byHand(url, PUTTERS)
      return {
        do: caller => pool.query({ ...upsert, values: [`key ${caller}`, String(now())] }),
        end: () => pool.end(),
      }
    }),
  ],
  comparisons: [{ measure: 'opsPerSecond', of: OWN, to: 'insert on conflict, by pg' }],
}

/** Returns two different accounts, chosen at random. */
function twoAccounts(): [string, string] {
  const from = Math.floor(Math.random() * ACCOUNTS)
  const to = (from + 1 + Math.floor(Math.random() * (ACCOUNTS - 1))) % ACCOUNTS
  return [`account ${from}`, `account ${to}`]
}

/** Transactions that move an amount between two accounts. Other callers want most of them at the same time. */
const transfers: Work = {
  part: 'postgres',
  name: `transactions of 2 of ${ACCOUNTS} keys by ${MOVERS} callers`,
  seconds: 1,
  subjects: [
    callers(OWN, MOVERS, async url => {
      const box = await open(url)
      const store = box.store('bench')
      const move = (): Promise<unknown> => {
        const [from, to] = twoAccounts()
        return store.transaction([from, to], transaction => {
          transaction.put(from, (transaction.get<number>(from) ?? 0) - 1)
          transaction.put(to, (transaction.get<number>(to) ?? 0) + 1)
        })
      }
      return { do: move, end: () => box.close() }
    }),
    callers('select for update, by pg', MOVERS, async url => {
      const pool = await byHand(url, MOVERS)
      for (let account = 0; account < ACCOUNTS; account++)
        await pool.query({ ...upsert, values: [`account ${account}`, '0'] })
      const move = async (): Promise<void> => {
        const [from, to] = twoAccounts()
        const client = await pool.connect()
        await client.query('begin')
        const { rows } = await client.query<{ key: string; value: string }>({ ...lock, values: [[from, to]] })
        for (const { key, value } of rows)
          await client.query({ ...upsert, values: [key, String(Number(value) + (key === from ? -1 : 1))] })
        await client.query('commit')
        client.release()
      }
      return { do: move, end: () => pool.end() }
    }),
  ],
  comparisons: [{ measure: 'opsPerSecond', of: OWN, to: 'select for update, by pg' }],
}

/** Values and transactions on a PostgreSQL server. */
export const postgresValues: readonly Work[] = [puts, transfers]
