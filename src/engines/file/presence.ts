import { connect } from 'node:net'
import { SocketFolder } from './socket-folder.js'

/** Whether the owner of a socket is alive. Unknown if the file is gone: its owner or another process has removed it. */
type Presence = 'alive' | 'dead' | 'unknown'

/**
 * Whether any owner of these sockets of the folder is alive. Dead if all are known to be dead. A stopped owner is
 * alive.
 */
export async function presenceOf(folder: string, addresses: readonly string[]): Promise<Presence> {
  const sockets = SocketFolder.open(folder)
  try {
    let presence: Presence = 'dead'
    // One at a time: thousands may have died, and each connection takes a descriptor.
    for (const address of addresses) {
      const found = await ownerOf(sockets.socketPath(address))
      if (found === 'alive') return found
      if (found === 'unknown') presence = found
    }
    return presence
  } finally {
    sockets.close()
  }
}

/** Whether the owner of the socket at a path is alive. Never rejects. */
export function ownerOf(path: string): Promise<Presence> {
  return new Promise(resolve => {
    const socket = connect({ path })
    socket.once('connect', () => {
      socket.destroy()
      resolve('alive')
    })
    socket.once('error', ({ code }: NodeJS.ErrnoException) => {
      if (code === 'ENOENT') resolve('unknown')
      // On systems other than Linux, the socket of a stopped process also refuses when its backlog is full.
      else if (code === 'ECONNREFUSED') resolve(process.platform === 'linux' ? 'dead' : 'unknown')
      // Any other error, such as a full backlog, occurs only while the owner is alive.
      else resolve('alive')
    })
  })
}
