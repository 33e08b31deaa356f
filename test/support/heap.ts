import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Collects garbage, and returns the memory that is in use, in bytes. */
export async function memoryInUse(): Promise<NodeJS.MemoryUsage> {
  // Settled promises and finished timers free their memory only in later turns of the event loop.
  for (let round = 0; round < 3; round++) {
    await new Promise(resolve => setTimeout(resolve, 5))
    collect()
  }
  return process.memoryUsage()
}
