import { readFileSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { createServer } from 'node:tls'
import * as client56 from 'hazelcast-client'
import * as client57 from 'hazelcast-client57'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { Box } from '../../src/box.js'
import { systemClock } from '../../src/base/clock.js'
import { HazelcastEngine } from '../../packages/hazelcast/src/hazelcast-engine.js'
import { parseHazelcastUrl } from '../../packages/hazelcast/src/hazelcast-url.js'
import type { Package } from '../../packages/hazelcast/src/link.js'
import { dropClosed } from '../../packages/hazelcast/src/client-internals.js'
import { open } from '../../src/open.js'
import { pause, soFar, until } from '../../packages/conformance/src/time.js'
import { intercepted } from '../support/hazelcast/intercepted.js'
import { makeCertificate } from '../support/servers/certificate.js'
import { freePort } from '../../apps/chaos/servers/free-port.js'
import { startHazelcast, TEST_CLUSTER } from '../support/servers/hazelcast.js'

/** The types of 5.7 differ from those of 5.6 only in private members. */
const PACKAGES = { '5.6': client56, '5.7': client57 as unknown as Package } as const
type Version = keyof typeof PACKAGES

const server = await startHazelcast()
afterAll(() => server.kill())

async function boxWith(version: Version, map: string): Promise<Box> {
  const place = parseHazelcastUrl(`hazelcast://${server.address}/${TEST_CLUSTER}?map=${map}`)
  const box = await Box.join(new HazelcastEngine(place, PACKAGES[version], systemClock), systemClock)
  onTestFinished(() => box.close())
  return box
}

test('boxes over hazelcast-client 5.6 and 5.7 exclude each other, also in transactions', async () => {
  const boxes = [await boxWith('5.6', 'clients'), await boxWith('5.7', 'clients')]
  let inside = 0
  let last = 0n
  const task = async (box: Box): Promise<void> => {
    for (let turn = 0; turn < 10; turn++) {
      await box.mutex('key').run(async grant => {
        expect(++inside).toBe(1)
        expect(grant.token).toBeGreaterThan(last)
        last = grant.token
        await pause(0)
        inside--
      })
      await box.store('s').transaction(['sum'], tx => tx.put('sum', (tx.get<number>('sum') ?? 0) + 1))
    }
  }
  await Promise.all(boxes.flatMap(box => [task(box), task(box)]))
  for (const box of boxes) expect((await box.store('s').get('sum'))!.value).toBe(40)
})

/** Ways to end a connection that the client considers open forever. */
const ends: Record<string, (registry: Registry, connection: Connection) => void> = {
  'a member closed while the client was let in': takeForOpen,
  // A failed write destroys the socket, and the connection gets neither `end` nor `error`.
  'a failed write ended': (_registry, { socket }) => void socket.destroy(),
}

test.each(
  Object.keys(ends).flatMap(end => (['5.6', '5.7'] as const).map(version => [end, version] as const)),
)('a connection that %s is dropped by client %s and replaced', async (end, version) => {
  const client = await PACKAGES[version].Client.newHazelcastClient({
    clusterName: TEST_CLUSTER,
    network: { clusterMembers: [server.address] },
    properties: { 'hazelcast.logging.level': 'OFF' },
  })
  onTestFinished(() => client.shutdown())
  const map = await client.getMap<string, string>(`closed-${version}`)
  const { connectionRegistry } = client as unknown as { connectionRegistry: Registry }
  const [connection] = connectionRegistry.getConnections()
  ends[end]!(connectionRegistry, connection!)
  const lost = map.get('key')
  lost.catch(() => undefined)
  await pause(1500)
  expect(connectionRegistry.getConnections()).toEqual([connection])
  expect(await soFar(lost)).not.toBe('fulfilled')
  dropClosed(client)
  await until('the member answers', async () => {
    const answer = map.set('key', 'value').then(() => map.get('key'))
    answer.catch(() => undefined)
    return (await Promise.race([answer, pause(1000)])) === 'value'
  })
})

test('the current client is checked even if an earlier one, abandoned while it started, ends later', async () => {
  const clients: client56.Client[] = []
  const clientPackage = intercepted(
    ({ send }) => send(),
    client => {
      if (clients.push(client) === 1) throw new client56.TargetDisconnectedError('refused by the test')
    },
  )
  const place = parseHazelcastUrl(`hazelcast://${server.address}/${TEST_CLUSTER}?map=given-up`)
  await using box = await Box.join(new HazelcastEngine(place, clientPackage, systemClock), systemClock)
  const [givenUp, inUse] = clients as [client56.Client, client56.Client]
  await givenUp.shutdown()
  const { connectionRegistry } = inUse as unknown as { connectionRegistry: Registry }
  const [connection] = connectionRegistry.getConnections()
  takeForOpen(connectionRegistry, connection!)
  await until('it is dropped', () => !connectionRegistry.getConnections().includes(connection!))
  await box.mutex('key').run(() => undefined)
})

/** The internal state of a client. */
interface Registry {
  getConnections(): readonly Connection[]
  deleteConnection(member: unknown): void
  setConnection(member: unknown, connection: Connection): void
}

interface Connection {
  readonly socket: Socket
  close(reason: string): void
  getRemoteUuid(): unknown
}

/** Closes a connection that the client still lists, as if a member ended it during authentication. */
function takeForOpen(registry: Registry, connection: Connection): void {
  const member = connection.getRemoteUuid()
  registry.deleteConnection(member)
  connection.close('by the test')
  registry.setConnection(member, connection)
}

test('TLS and the other options of the client pass through', { timeout: 60_000 }, async () => {
  const { folder, certificate, key } = makeCertificate()
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  // Only the Enterprise edition supports TLS for members, so a proxy terminates it here.
  const port = await freePort()
  await using behind = await startHazelcast({ publicPort: port })
  const sockets = new Set<Socket>()
  const ca = readFileSync(certificate)
  const proxy = createServer({ cert: ca, key: readFileSync(key) }, client => {
    const member = connect(behind.port, behind.host)
    for (const [socket, to] of [
      [client, member],
      [member, client],
    ] as const) {
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => to.destroy())
      socket.pipe(to)
    }
  })
  proxy.on('tlsClientError', () => undefined)
  await new Promise<void>(resolve => void proxy.listen(port, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    proxy.close()
  })
  const hazelcast = (sslOptions: object | undefined) => ({
    clusterName: TEST_CLUSTER,
    network: {
      clusterMembers: [`127.0.0.1:${port}`],
      ...(sslOptions && { ssl: { enabled: true, sslOptions } }),
    },
    connectionStrategy: { connectionRetry: { clusterConnectTimeoutMillis: 1000 } },
  })
  const trusting = { ca: [ca], servername: 'localhost' }
  {
    await using box = await open({ hazelcast: hazelcast(trusting) })
    expect(await box.mutex('key').run(grant => typeof grant.token)).toBe('bigint')
  }
  await expect(open({ hazelcast: hazelcast({}) })).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  await expect(open({ hazelcast: hazelcast(undefined) })).rejects.toMatchObject({ code: 'UNAVAILABLE' })
})
