import { connect } from 'node:net'
import { SocketFolder } from './socket-folder.js'

/** Whether anybody listens on any of these sockets of the folder; one that is stopped does. */
export async function anyoneListens(folder: string, addresses: readonly string[]): Promise<boolean> {
  const sockets = SocketFolder.open(folder)
  try {
    const answers = await Promise.all(addresses.map(address => listens(sockets.socketPath(address))))
    return answers.includes(true)
  } finally {
    sockets.close()
  }
}

function listens(path: string): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect({ path })
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    // Any other trouble, such as a full backlog, is one that only a living owner makes.
    socket.once('error', ({ code }: NodeJS.ErrnoException) => {
      resolve(code !== 'ECONNREFUSED' && code !== 'ENOENT')
    })
  })
}
