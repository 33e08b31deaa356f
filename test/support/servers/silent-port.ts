import { createServer } from 'node:net'
import { onTestFinished } from 'vitest'
import { freePort } from '../../../apps/chaos/servers/free-port.js'

/** The port of a server that takes connections and answers nothing, until the test ends. */
export async function silentPort(): Promise<number> {
  const port = await freePort()
  const server = createServer(socket => onTestFinished(() => void socket.destroy()))
  onTestFinished(() => void server.close())
  await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve))
  return port
}
