import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'

/**
 * A TCP port of 127.0.0.1 that is free and stays so while this process lives, also while the server that listens on it
 * is down for a restart.
 */
export async function freePort(): Promise<number> {
  while (true) {
    // Below the ports that the system gives to outgoing connections: a client that tries again and again to reach a
    // server that is down could otherwise be given the server's port, and connect to itself.
    const port = 20_000 + Math.floor(Math.random() * 12_000)
    // Nothing is sent by UDP here: a socket on the same number shows other test processes that the port is taken.
    if ((await isReserved(port)) && (await isFree(port))) return port
  }
}

function isReserved(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = createSocket({ type: 'udp4' })
    socket.once('error', () => {
      socket.close()
      resolve(false)
    })
    socket.bind({ port, address: '127.0.0.1', exclusive: true }, () => {
      socket.unref()
      resolve(true)
    })
  })
}

function isFree(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)))
  })
}
