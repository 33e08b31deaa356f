import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** The memory in use after a collection, in bytes. */
export async function memoryInUse(): Promise<NodeJS.MemoryUsage> {
  // Settled promises and finished timers let go of theirs only in later turns.
  for (let round = 0; round < 3; round++) {
    await new Promise(resolve => setTimeout(resolve, 5))
    collect()
  }
  return process.memoryUsage()
}
