import { spawn, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Performance } from '../processes/performer.js'
import { toldAddress } from './address-file.js'
import type { ForeignLibrary } from './locker.js'
import { zooKeeperSupport } from './zookeeper-server.js'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const built = join(root, '.interop/java')

/** Curator's InterProcessMutex in a Java program; its tasks are threads. */
export const curator: ForeignLibrary = {
  name: 'Curator',
  support(folder) {
    const { status } = spawnSync(process.execPath, [join(root, 'scripts/setup.mjs'), 'interop'], {
      stdio: ['ignore', 2, 2],
    })
    if (status !== 0) throw new Error('the programs in other languages can not be built, see above')
    return zooKeeperSupport(folder)
  },
  async start({ folder, process: index, keys, tasks, isGuarded }) {
    const part = {
      address: await toldAddress(folder),
      keys,
      tasks,
      guarded: isGuarded ? join(folder, 'guarded') : null,
      holder: index + 1,
    }
    const program = ['-cp', `${built}/lib/*:${built}/classes`, 'CuratorCycles', JSON.stringify(part)]
    const child = spawn('java', program, { stdio: ['pipe', 'pipe', 'inherit'] })
    const gone = new Promise(resolve => child.once('close', resolve))
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    const next = async (): Promise<string> => {
      const { value, done } = await lines.next()
      if (done === true) throw new Error('the Java program has ended')
      return value
    }
    await next()
    return {
      perform({ startAt, endAt }) {
        child.stdin.write(`perform ${startAt} ${endAt}\n`)
        return performed(next)
      },
      async stop() {
        child.stdin.end()
        await gone
      },
    }
  },
}

/** Reads what the program tells of a window. */
async function performed(next: () => Promise<string>): Promise<Performance> {
  const waits: number[] = []
  const requested: number[] = []
  let broken: string | undefined
  while (true) {
    const line = await next()
    const [what, ...values] = line.split(' ')
    if (what === 'waits') waits.push(...values.map(Number))
    else if (what === 'requested') requested.push(...values.map(Number))
    else if (what === 'broken') broken = values.join(' ')
    else {
      return {
        operations: Number(values[0]),
        waits: Float64Array.from(waits),
        requested: Float64Array.from(requested),
        broken,
      }
    }
  }
}
