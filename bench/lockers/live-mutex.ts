import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client } from 'live-mutex'
import type { LockLibrary } from './locker.js'

const BROKER = fileURLToPath(new URL('./live-mutex-broker.process.js', import.meta.url))

/** live-mutex with its broker in a separate process, over a Unix socket. */
export const liveMutex: LockLibrary = {
  name: 'live-mutex',
  async open(folder) {
    const client = new Client({ udsPath: socket(folder) })
    await client.ensure()
    return {
      async lock(key) {
        const { id } = await client.acquire(key)
        return {
          async unlock() {
            await client.release(key, { id })
          },
        }
      },
      async close() {
        client.setNoRecover()
        client.close()
      },
    }
  },
  async support(folder) {
    const broker = fork(BROKER, [socket(folder)], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    await once(broker, 'message')
    return async () => {
      const gone = once(broker, 'exit')
      broker.kill('SIGKILL')
      await gone
    }
  },
}

function socket(folder: string): string {
  return join(folder, 'broker.sock')
}
