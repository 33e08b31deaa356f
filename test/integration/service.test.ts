import { fork, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { freePort } from '../../apps/chaos/servers/free-port.js'
import { pause, until } from '../../packages/conformance/src/time.js'
import { builtProgram } from '../support/built-program.js'
import { startPostgres } from '../support/servers/postgres.js'
import { startRedis } from '../support/servers/redis.js'
import type { Calls } from './partner.process.js'

const INVOICES = 200
const CLIENTS = 30
/** Invoices that are paid one after another before the clients begin. */
const WARM_UP = 15
/** Interval between reports, in milliseconds. */
const REPORT_EVERY = 2000
const LEASE = 2000
/** Delay before a client retries, in milliseconds. */
const AGAIN = 100

async function startPartner(): Promise<{ url: string; calls: () => Promise<Calls> }> {
  const child = fork(builtProgram('test/integration/partner.process.js'))
  onTestFinished(() => void child.kill('SIGKILL'))
  const [port] = (await once(child, 'message')) as [number]
  return {
    url: `http://127.0.0.1:${port}`,
    async calls() {
      child.send('calls')
      const [calls] = (await once(child, 'message')) as [Calls]
      return calls
    },
  }
}

interface Service {
  readonly url: string
  readonly process: ChildProcess
  readonly complaints: () => string
}

async function startService(environment: Record<string, string>): Promise<Service> {
  const port = String(await freePort())
  const child = spawn(process.execPath, [builtProgram('examples/service/service.js')], {
    env: { ...process.env, ...environment, PORT: port, REPORT_EVERY: `${REPORT_EVERY}ms` },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let complaints = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (complaints += text))
  await Promise.race([
    once(child.stdout, 'data'),
    once(child, 'close').then(() => {
      throw new Error(`the service ended: ${complaints}`)
    }),
  ])
  return { url: `http://127.0.0.1:${port}`, process: child, complaints: () => complaints }
}

/** The limit of calls to the partner, in any second. */
const CALLS_A_SECOND = 20
/** Maximum difference between the delays of two calls from permit to arrival, in milliseconds. */
const LATE = 500

/** Returns the maximum number of times within a period of this length, in milliseconds. */
function mostWithin(times: readonly number[], period: number): number {
  let from = 0
  return Math.max(
    ...times.map((time, index) => {
      while (times[from]! <= time - period) from++
      return index - from + 1
    }),
  )
}

test('a service of three processes keeps its word while one is killed, Redis hangs, and each server restarts', async () => {
  // Redis must keep its data when it restarts.
  const [redis, postgres] = await Promise.all([
    startRedis({ config: ['appendonly yes', 'appendfsync always'] }),
    startPostgres(),
  ])
  onTestFinished(async () => {
    await Promise.all([redis.kill(), postgres.kill()])
  })
  const db = new pg.Pool({ connectionString: postgres.url })
  // Ignores errors, because the pool ends after the server.
  db.on('error', () => undefined)
  onTestFinished(() => db.end().catch(() => undefined))
  await db.query(readFileSync(new URL('../../examples/service/schema.sql', import.meta.url), 'utf8'))
  await db.query(`insert into invoice (id) select generate_series(1, $1)::text`, [INVOICES])
  const partner = await startPartner()
  const settings = { REDIS_URL: redis.url, DATABASE_URL: postgres.url, PARTNER_URL: partner.url }
  const services = await Promise.all([1, 2, 3].map(() => startService(settings)))
  const alive = (): readonly Service[] =>
    services.filter(({ process }) => process.exitCode === null && !process.killed)
  const rows = async <Row extends object>(sql: string, values: unknown[] = []): Promise<Row[]> => {
    for (;;) {
      try {
        return (await db.query<Row>(sql, values)).rows
      } catch {
        // Retries while the server restarts.
        await pause(AGAIN)
      }
    }
  }
  const isPaid = async (id: string): Promise<boolean> =>
    (await rows<{ paid: boolean }>('select paid from invoice where id = $1', [id]))[0]!.paid

  /** Requests a payment from one process after the other until one reports that it is done. */
  async function client(id: string, isOnlyOne: boolean): Promise<void> {
    let mayBeDone = false
    for (let place = Number(id); ; place++) {
      const { url } = alive()[place % alive().length]!
      const answer = await fetch(`${url}/invoices/${id}/payment`, { method: 'POST' }).catch(() => undefined)
      const problem =
        answer?.ok === false ? ((await answer.json().catch(() => undefined)) as object) : undefined
      if (answer?.ok) {
        expect(await isPaid(id)).toBe(true)
        return
      }
      const notDone = problem && 'taskBegan' in problem && problem.taskBegan === false
      if (!notDone) mayBeDone = true
      else if (isOnlyOne && !mayBeDone) expect(await isPaid(id)).toBe(false)
      await pause(AGAIN)
    }
  }

  const paid = async (): Promise<number> =>
    (await rows<{ count: number }>('select count(*)::int as count from invoice where paid'))[0]!.count
  const ready = async ({ url }: Service): Promise<number> => (await fetch(`${url}/ready`)).status
  const newestTerm = async (): Promise<{ token: string; pid: number }> =>
    (await rows<{ token: string; pid: number }>('select token, pid from term order by at desc limit 1'))[0]!

  await until('a process leads', async () => (await newestTerm()) !== undefined)
  expect(await Promise.all(services.map(ready))).toEqual([200, 200, 200])
  // The first call of a process is slow, and would arrive long after its permit was granted.
  let next = 1
  while (next <= WARM_UP) await client(String(next++), true)
  await pause(1000)
  const clients = Promise.all(
    Array.from({ length: CLIENTS }, async () => {
      while (next <= INVOICES) {
        const id = String(next++)
        await (Number(id) % 2 === 0 ? client(id, true) : Promise.all([client(id, false), client(id, false)]))
      }
    }),
  )
  // Handles a rejection now, because the test awaits `clients` only at the end.
  clients.catch(() => undefined)

  await until('a quarter is paid', async () => (await paid()) > INVOICES / 4, 60_000)
  const { token, pid } = await newestTerm()
  services.find(({ process }) => process.pid === pid)!.process.kill('SIGKILL')
  const killedAt = performance.now()
  await until('another process leads', async () => BigInt((await newestTerm()).token) > BigInt(token))
  expect(performance.now() - killedAt).toBeLessThan(LEASE + 1000)

  await until('half is paid', async () => (await paid()) > INVOICES / 2, 60_000)
  redis.pause()
  await pause(1500)
  redis.resume()

  await until('five eighths are paid', async () => (await paid()) > (INVOICES * 5) / 8, 60_000)
  const termOfOutage = await newestTerm()
  await postgres.kill()
  // Each process becomes the leader in turn, and its task fails.
  await pause(3000)
  await postgres.start()
  await until(
    'a process leads on',
    async () => BigInt((await newestTerm()).token) > BigInt(termOfOutage.token),
    20_000,
  )

  await until('three quarters are paid', async () => (await paid()) > (INVOICES * 3) / 4, 60_000)
  await redis.stop()
  const [first] = alive()
  await until('a process says that it is not ready', async () => (await ready(first!)) === 503)
  expect((await fetch(`${first!.url}/alive`)).status).toBe(200)
  const termBefore = await newestTerm()
  // The leader loses its lease. It writes until then.
  await pause(LEASE)
  await redis.start()
  await until('it is ready again', async () => (await ready(first!)) === 200)
  await until(
    'a process leads again',
    async () => BigInt((await newestTerm()).token) > BigInt(termBefore.token),
  )

  await clients
  expect(await paid()).toBe(INVOICES)
  const { times, keys } = await partner.calls()
  expect(new Set(keys).size).toBe(INVOICES)
  // Calls that arrive within a period got their permits within that period plus LATE.
  for (const seconds of [1, 2, 5])
    expect(mostWithin(times, seconds * 1000 - LATE)).toBeLessThanOrEqual(seconds * CALLS_A_SECOND)
  // Terms do not overlap: the writes are in the order of their tokens.
  const terms = await rows<{ token: string }>('select token from term order by at')
  const tokens = terms.map(({ token }) => BigInt(token))
  expect(tokens).toEqual([...tokens].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0)))
  const slots = (): Promise<{ slot: string; count: number }[]> =>
    rows(
      `select floor(extract(epoch from at) * 1000 / ${REPORT_EVERY}) as slot, count(*)::int as count from report group by 1`,
    )
  await until('there are reports of three slots', async () => (await slots()).length > 2, 60_000)
  const ended = alive().map(async ({ process }) => (await once(process, 'close')) as unknown[])
  for (const { process } of alive()) process.kill('SIGTERM')
  expect(await Promise.all(ended)).toEqual(ended.map(() => [0, null]))
  expect((await slots()).filter(({ count }) => count > 1)).toEqual([])
}, 180_000)
