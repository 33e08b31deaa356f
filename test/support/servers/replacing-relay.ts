import { connect, createServer, type AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/**
 * Starts a relay that replaces a text in a server's replies, such as its version, with another one of the same length.
 * It ends with the test. Returns its port.
 * @param at its port; any free one by default
 */
export async function replacingRelay(port: number, from: string, to: string, at = 0): Promise<number> {
  const relay = createServer(client => {
    const server = connect(port, '127.0.0.1')
    client.pipe(server)
    server.on('data', data => client.write(data.toString('latin1').replaceAll(from, to), 'latin1'))
    server.on('end', () => client.end()).on('error', () => client.destroy())
    client.on('error', () => server.destroy())
  })
  await new Promise<void>(resolve => relay.listen(at, '127.0.0.1', resolve))
  onTestFinished(() => void relay.close())
  return (relay.address() as AddressInfo).port
}
