import { connect, createServer } from 'node:net'
import { expect, test, vi } from 'vitest'
import { ZooKeeper } from 'signalbox-zookeeper'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { startZooKeeper } from '../support/servers/zookeeper.js'

/** The address that the server's host name resolves to. */
const name = vi.hoisted(() => ({ address: '127.0.0.1', asked: 0 }))

vi.mock('node:dns/promises', () => ({
  lookup: () => {
    name.asked++
    return Promise.resolve([{ address: name.address, family: 4 }])
  },
}))

test('a server with a new address is found by its name, and the session continues there', async () => {
  const server = await startZooKeeper()
  try {
    await using before = await Proxy.start(server.port)
    const after = createServer(client => {
      const upstream = connect(server.port, '127.0.0.1')
      for (const [from, to] of [
        [client, upstream],
        [upstream, client],
      ] as const) {
        from.on('error', () => undefined)
        from.on('close', () => to.destroy())
        from.pipe(to)
      }
    })
    // Another address of this machine, with the same port.
    await new Promise<void>(resolve => after.listen(before.port, '127.0.0.2', resolve))
    after.unref()
    const zk = await ZooKeeper.connect(`moving.test:${before.port}`)
    try {
      const { sessionId } = zk
      await zk.create('/mine', 'kept', { ephemeral: true })
      const asked = name.asked
      name.address = '127.0.0.2'
      before.target = undefined
      before.cut()
      expect((await zk.getData('/mine')).data.toString()).toBe('kept')
      expect(zk.sessionId).toBe(sessionId)
      expect(name.asked).toBeGreaterThan(asked)
    } finally {
      await zk.close()
      after.close()
    }
  } finally {
    await server.kill()
  }
})
