import { expect, test } from 'vitest'
import { pause } from '../../packages/conformance/src/time.js'
import { open } from '../../src/index.js'
import { startPostgres } from '../support/servers/postgres.js'

/** Number of new keys and of new IDs each second. */
const RATE = 200
const TICK = 100
/** Retention of IDs, and duration of a part of the test, in milliseconds. Keys are kept for a minute. */
const RETENTION = 15_000
const PART = 60_000

test(`${RATE} new keys and ids a second use no more space after the first minutes`, async () => {
  await using server = await startPostgres({ settings: { autovacuum_naptime: '5s' } })
  await using box = await open(server.url)
  const store = box.store('s')
  let used = 0
  let worst = 0
  const use = async (place: number): Promise<void> => {
    const name = `${used++}`
    const begun = performance.now()
    await Promise.all([
      box.mutex(`key ${name}`).run(() => undefined),
      store.transaction([`${place}`], tx => tx.put(`${place}`, name), { id: name, retention: RETENTION }),
    ])
    worst = Math.max(worst, performance.now() - begun)
  }
  const part = async (): Promise<{ rows: number; size: number; rate: number; worst: number }> => {
    worst = 0
    const before = used
    const begun = performance.now()
    const underway: Promise<void>[] = []
    for (let due = begun; due < begun + PART; due += TICK) {
      await pause(Math.max(0, due - performance.now()))
      for (let place = 0; place < (RATE * TICK) / 1000; place++) underway.push(use(place))
    }
    await Promise.all(underway)
    const [found] = await server.query<{ rows: string; size: string }>(
      `select (select count(*) from signalbox.keys) + (select count(*) from signalbox.recorded) as rows,
        pg_database_size('postgres') as size`,
    )
    const took = performance.now() - begun
    return {
      rows: Number(found!.rows),
      size: Number(found!.size) / 1e6,
      rate: ((used - before) / took) * 1000,
      worst,
    }
  }
  const parts = [await part(), await part(), await part(), await part()]
  console.table(parts)
  const [, second, , last] = parts
  // By the end of the second minute, the number of live rows is constant, and deletion keeps up with insertion.
  expect(last!.rows).toBeLessThan(1.3 * second!.rows)
  expect(last!.size).toBeLessThan(1.3 * second!.size)
  expect(last!.rate).toBeGreaterThan(0.9 * parts[0]!.rate)
})
