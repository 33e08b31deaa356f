import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { exclusion } from '../../packages/conformance/src/exclusion.js'
import { fencing } from '../../packages/conformance/src/fencing.js'
import type { EngineFixture } from '../../packages/conformance/src/fixture.js'
import { safeState } from '../../packages/conformance/src/safe-state.js'
import { wholeness } from '../../packages/conformance/src/wholeness.js'
import { open, type SignalboxError } from '../../src/index.js'
import { openPostgres } from '../../src/engines/postgres/open.js'
import { postgres } from '../contract/postgres-fixture.js'
import { contractParts } from '../contract/suite.js'
import { startPgBouncer, type PgBouncer } from '../support/servers/pgbouncer.js'
import { startPostgres } from '../support/servers/postgres.js'

let shared: Promise<PgBouncer> | undefined

function pooler(): Promise<PgBouncer> {
  return (shared ??= startPostgres().then(server => startPgBouncer(server)))
}

/** PostgreSQL behind a pooler in transaction mode. */
const pooled: EngineFixture = {
  name: 'postgres behind PgBouncer',
  guarantees: postgres.guarantees,
  network: 'none',
  weaknesses: {},
  knowsChanges: true,
  async start() {
    const url = `${(await pooler()).url}?signalbox_schema=s${randomUUID().slice(0, 8)}`
    return { url, engine: () => openPostgres(url), close: () => undefined }
  },
}

contractParts(pooled, exclusion, fencing, wholeness, safeState)

test('boxes that are opened at the same time create the schema once', async () => {
  const { url } = await pooler()
  for (let round = 0; round < 5; round++) {
    const schema = `once${round}`
    const boxes = await Promise.all(
      Array.from({ length: 6 }, () => open(`${url}?signalbox_schema=${schema}`)),
    )
    await boxes[0]!.store('s').put('key', schema)
    for (const box of boxes) expect((await box.store('s').get('key'))!.value).toBe(schema)
    await Promise.all(boxes.map(box => box.close()))
  }
})

test('a statement that a pooler rejects because its server is down was not executed', async () => {
  await using server = await startPostgres()
  await using before = await startPgBouncer(server)
  await using box = await open(before.url)
  await box.store('s').put('key', 1)
  await server.kill()
  const codes = new Set<string>()
  // The first statements use dead connections.
  for (let refused = 0; refused < 5;) {
    const error: unknown = await box
      .store('s')
      .put('key', 2)
      .catch((failure: unknown) => failure)
    const { code, message } = error as SignalboxError
    if (message.includes('login has been failing')) {
      codes.add(code)
      refused++
    }
  }
  expect([...codes]).toEqual(['UNAVAILABLE'])
})

test('a box works behind a pooler in statement mode', async () => {
  await using server = await startPostgres()
  await using statements = await startPgBouncer(server, 'statement')
  await using box = await open(statements.url)
  const accounts = box.store('accounts')
  await box.mutex('a', 'b').run(() => accounts.put('a', 1))
  await accounts.transaction(['a', 'b'], tx => tx.put('b', 2))
  expect((await accounts.get('b'))!.value).toBe(2)
})

test('an error names a pooler in session mode that has too few connections', async () => {
  await using server = await startPostgres()
  await using sessions = await startPgBouncer(server, 'session', 1)
  await using box = await open(sessions.url)
  const calls = ['a', 'b'].map(key => box.limiter(key, { limit: 5, per: '1s' }).acquire())
  const [first] = await Promise.allSettled([...calls, box.mutex('key').run(() => undefined)]).then(all =>
    all.filter(({ status }) => status === 'rejected'),
  )
  expect(first).toMatchObject({
    reason: { message: expect.stringContaining('a pooler in session mode must allow five for each box') },
  })
})
