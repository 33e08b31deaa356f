import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'

/**
 * Returns a free TCP port of 127.0.0.1. It stays reserved while this process lives, even while the server that listens
 * on it restarts.
 */
export async function freePort(): Promise<number> {
  while (true) {
    // Below the ports that the system uses for outgoing connections. A client that repeatedly connects to a server that
    // is down could otherwise get the server's port, and connect to itself.
    const port = 20_000 + Math.floor(Math.random() * 12_000)
    // Reserves the port with a UDP socket, which sends nothing: it shows other test processes that the port is taken.
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
