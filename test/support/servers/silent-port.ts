import { createServer } from 'node:net'
import { onTestFinished } from 'vitest'
import { freePort } from '../../../apps/chaos/servers/free-port.js'

/** Starts a server that accepts connections and never answers, until the test ends. Returns its port. */
export async function silentPort(): Promise<number> {
  const port = await freePort()
  const server = createServer(socket => onTestFinished(() => void socket.destroy()))
  onTestFinished(() => void server.close())
  await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve))
  return port
}
