import { connect, createServer, type AddressInfo } from 'node:net'
import { PGlite } from '@electric-sql/pglite'
import pg from 'pg'
import postgres from 'postgres'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { timed, until } from '../../packages/conformance/src/time.js'
import { open, type Box } from '../../src/index.js'
import { failure } from '../support/failure.js'
import { givenClients } from '../support/postgres/given-clients.js'
import { open as openOverPostgres } from '../support/postgres/over-postgres.process.js'
import { startPostgres } from '../support/servers/postgres.js'

const server = await startPostgres()
afterAll(() => server.kill())

/** Closes a box at the end of the test. */
function kept(box: Box): Box {
  onTestFinished(() => box.close())
  return box
}

async function openOver(client: object, schema?: string): Promise<Box> {
  return kept(await open({ postgres: client, schema }))
}

const invalid = (reason: string) => failure('INVALID_ARGUMENT', reason)

test.each(givenClients)('$name stays open when the box is closed', async ({ connect }) => {
  const given = await connect(server.url)
  onTestFinished(given.close)
  const box = await openOver(given.client, 'mine')
  await box.mutex('train').run(async () => {
    expect(await server.query(`select from mine.keys where name = 'lock/train'`)).toHaveLength(1)
  })
  await box.close()
  const again = await openOver(given.client, 'mine')
  expect(await again.mutex('train').run(() => 'done')).toBe('done')
})

/** ReadyForQuery outside of a transaction, and an ErrorResponse that ends the connection. */
const READY = Buffer.from('Z\0\0\0\x05I', 'latin1')
const ENDED = Buffer.from('E\0\0\0\x1aSFATAL\0C57P01\0Mended\0\0', 'latin1')

test('if a server ends a connection in the packet of its greeting, the call fails and not the process', async () => {
  const relay = createServer(client => {
    const upstream = connect(server.address.port, '127.0.0.1')
    client.pipe(upstream)
    upstream.on('data', data =>
      data.subarray(-READY.length).equals(READY)
        ? client.end(Buffer.concat([data, ENDED]))
        : client.write(data),
    )
    for (const socket of [client, upstream]) socket.on('error', () => undefined)
    client.on('close', () => upstream.destroy())
  })
  await new Promise<void>(resolve => relay.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void relay.close())
  const { port } = relay.address() as AddressInfo
  const error = await open(server.url.replace(String(server.address.port), String(port))).catch(
    (error: unknown) => error,
  )
  expect((error as { code: string }).code).toMatch(/^(UNAVAILABLE|INDETERMINATE)$/)
})

describe.each([
  ['pg', open],
  ['postgres', openOverPostgres],
])('boxes of one process over %s', (name, openUrl) => {
  const address = (): string => `${server.url}?application_name=shared-${name}`

  async function connections(): Promise<number> {
    const rows = await server.query(`select from pg_stat_activity where application_name = 'shared-${name}'`)
    return rows.length
  }

  test('share at most five connections, and the last one closes them', async () => {
    const boxes = await Promise.all(Array.from({ length: 30 }, () => openUrl(address())))
    let most = 0
    const count = async (): Promise<void> => void (most = Math.max(most, await connections()))
    for (const [index, box] of boxes.entries()) {
      await box.mutex(`own ${index}`).run(count)
      await box.limiter('api', { limit: 1000, per: '1s' }).acquire()
    }
    const [last, ...others] = boxes as [Box, ...Box[]]
    await Promise.all(boxes.map(box => box.mutex('key').run(count)))
    expect(most).toBeLessThanOrEqual(5)
    await Promise.all(others.map(box => box.close()))
    expect(await last.mutex('key').run(() => 'done')).toBe('done')
    await last.close()
    await until('all connections have ended', async () => (await connections()) === 0)
  })

  test('have as many as they would have by themselves if the server is far', async () => {
    await using network = await Proxy.start(server.address.port)
    const url = address().replace(`:${server.address.port}`, `:${network.port}`)
    const boxes = await Promise.all(Array.from({ length: 20 }, async () => kept(await openUrl(url))))
    const round = (): Promise<unknown> =>
      Promise.all(boxes.map((box, index) => box.mutex(`far ${index}`).run(() => undefined)))
    await round()
    network.delay = 100
    await round()
    // Two round trips of 200 ms. With only four connections, this would take five times as long.
    expect(await timed(round)).toBeLessThan(1000)
    network.delay = 0
  })
})

test('an error names a lender that lends no connection', async () => {
  const lender = { connect: () => new Promise<object>(() => undefined), release: () => undefined }
  await expect(openOver(lender)).rejects.toMatchObject(
    failure('UNAVAILABLE', 'no connection of the pool within 5000 ms'),
  )
})

test('a PGlite supports a fence in a transaction, but no store transaction', async () => {
  const pglite = await PGlite.create()
  onTestFinished(() => pglite.close())
  const box = await openOver(pglite)
  expect(box.guarantees.scope).toBe('thread')
  const grant = await box.mutex('key').acquire()
  await pglite.transaction(async tx => {
    await grant.fence(tx)
    const within = box.store('s').transaction(['key'], state => state.put('key', 1), { in: tx })
    await expect(within).rejects.toMatchObject(
      invalid("can't write values in a caller's transaction; remove the option in"),
    )
  })
  await grant.release()
})

const reconnecting = givenClients.filter(({ isShared }) => isShared)
const lasting = givenClients.filter(({ isShared }) => !isShared)

test.each(reconnecting)('a box over $name continues when its server is back', async ({ connect }) => {
  await using proxy = await Proxy.start(server.address.port)
  const given = await connect(through(proxy))
  onTestFinished(given.close)
  const box = await openOver(given.client)
  await box.store('s').put('key', 1)
  proxy.target = undefined
  proxy.cut()
  await expect(box.store('s').put('key', 2)).rejects.toMatchObject({
    code: expect.stringMatching('UNAVAILABLE|INDETERMINATE'),
  })
  proxy.target = server.address.port
  await until('it is connected', () => works(box))
})

test.each(lasting)(
  'a box over $name is unavailable from when its connection is lost',
  async ({ connect }) => {
    await using proxy = await Proxy.start(server.address.port)
    const given = await connect(through(proxy))
    onTestFinished(given.close)
    const box = await openOver(given.client)
    await box.store('s').put('key', 1)
    proxy.cut()
    await until('the connection is lost', () => works(box).then(isWorking => !isWorking))
    await expect(box.store('s').get('key')).rejects.toMatchObject(
      failure('UNAVAILABLE', 'the client that was given is not connected any more'),
    )
  },
)

const urls = [
  { name: 'pg', openUrl: open },
  { name: 'postgres', openUrl: openOverPostgres },
]

describe.each(urls)('a URL over $name', ({ openUrl }) => {
  test('an error has the server’s reason', async () => {
    const url = server.url.replace(/postgres$/, 'nowhere')
    await expect(openUrl(url)).rejects.toMatchObject(failure('UNAVAILABLE', 'the database does not exist'))
  })
})

test('a value that is not a client is rejected', async () => {
  for (const value of [undefined, null, 1, server.url, {}, [], () => {}, new Map(), { query: () => {} }])
    await expect(open({ postgres: value as object })).rejects.toMatchObject(
      invalid(
        'postgres must be a Pool or a Client of pg, a sql of postgres, a PGlite, or { connect, release }, not',
      ),
    )
  await expect(open({ postgres: {}, shcema: 'a' } as never)).rejects.toMatchObject(
    invalid('unknown option "shcema"; it must be schema'),
  )
  await expect(open({ postgres: {}, schema: 'A-B' })).rejects.toMatchObject(invalid('schema must be'))
})

test('a client that can’t be used is rejected with the reason', async () => {
  const client = new pg.Client(server.address)
  await expect(openOver(client)).rejects.toMatchObject(invalid('connect it first'))
  await client.connect()
  await client.query('begin')
  await expect(openOver(client)).rejects.toMatchObject(invalid('inside a transaction'))
  await client.end()
  await expect(openOver(client)).rejects.toMatchObject(invalid('connect it first'))
  const pool = new pg.Pool({ ...server.address })
  await pool.end()
  await expect(openOver(pool)).rejects.toMatchObject(invalid('was ended'))
  const sql = postgres(server.url)
  await sql.begin(async transaction => {
    await expect(openOver(transaction)).rejects.toMatchObject(invalid('of a transaction'))
  })
  await sql.end()
})

/** Returns the URL of the server behind a proxy. */
function through(proxy: Proxy): string {
  return server.url.replace(`:${server.address.port}`, `:${proxy.port}`)
}

function works(box: Box): Promise<boolean> {
  return box
    .mutex('other')
    .run(() => undefined)
    .then(
      () => true,
      () => false,
    )
}
