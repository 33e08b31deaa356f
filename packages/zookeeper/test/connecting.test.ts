import { createServer, type AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { ZooKeeper } from '../src/index.js'
import { JuteWriter } from '../src/jute-writer.js'

const WELCOME = new JuteWriter().int(0).int(60_000).long(7n).bytes(Buffer.alloc(16)).frame()

test('a client that was rejected for a while does not wait long for a server that is silent once', async () => {
  let connections = 0
  const server = createServer(socket => {
    socket.on('error', () => undefined)
    connections++
    if (connections <= 6) return void socket.destroy()
    // The next connection gets no reply, and those after it a welcome.
    if (connections > 7) socket.once('data', () => socket.write(WELCOME))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo

  const begun = performance.now()
  const zk = await ZooKeeper.connect(`127.0.0.1:${port}`, { sessionTimeout: '60s', timeout: '60s' })
  expect(connections).toBe(8)
  expect(performance.now() - begun).toBeLessThan(20_000)
  server.close()
  await zk.close()
}, 90_000)
