import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { now } from '../clock.js'
import type { LockLibrary } from '../lockers/locker.js'
import type { Comparison, Sample, Subject, Work } from '../work.js'

const HOLDER = fileURLToPath(new URL('./holder.process.js', import.meta.url))
/** Time that the waiter waits before the holder is killed, in milliseconds. */
const WAIT = 200

/** Measures how long a waiter in another process needs to acquire the lock of a holder that is killed. */
export function killedHolder(part: string, libraries: readonly LockLibrary[], comparison: Comparison): Work {
  const subjects = libraries.map(recovering)
  return {
    part,
    name: 'the lock of a killed process',
    seconds: 1,
    mostRounds: 3,
    subjects,
    comparisons: [comparison],
  }
}

function recovering(library: LockLibrary): Subject {
  return {
    name: library.name,
    async start({ folder }) {
      const locker = await library.open(folder, ['key'])
      const recover = async (): Promise<number> => {
        const holder = fork(HOLDER, [library.name, folder])
        await once(holder, 'message')
        const next = locker.lock('key')
        await new Promise(resolve => setTimeout(resolve, WAIT))
        const killed = now()
        holder.kill('SIGKILL')
        const held = await next
        const wait = now() - killed
        await held.unlock()
        return wait
      }
      return {
        async measure(milliseconds): Promise<Sample> {
          const waits: number[] = []
          const end = now() + milliseconds
          do waits.push(await recover())
          while (now() < end)
          const total = waits.reduce((sum, wait) => sum + wait, 0)
          return { operations: waits.length, milliseconds: total, waits: Float64Array.from(waits) }
        },
        stop: () => locker.close(),
      }
    },
  }
}
