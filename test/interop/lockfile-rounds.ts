import type { lock } from 'proper-lockfile'
import { answer, type Part } from './rounds.js'

/**
 * Runs a client that locks the file `part.name`. With another argument, the program uses another name for the folder
 * that is the lock.
 */
export async function answerWith(locksFile: typeof lock): Promise<void> {
  const part = JSON.parse(process.argv[2]!) as Part
  const other = process.argv[3] === undefined ? {} : { lockfilePath: `${part.name}.${process.argv[3]}` }
  let release: () => Promise<void>
  await answer(part, {
    async acquire(wait) {
      const [minTimeout, maxTimeout] = [part.retry, part.retry]
      const retries = { retries: Math.ceil(wait / part.retry), factor: 1, minTimeout, maxTimeout }
      try {
        release = await locksFile(part.name, { stale: part.lease, retries, ...other })
        return true
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ELOCKED') return false
        throw error
      }
    },
    async release() {
      try {
        await release()
        return true
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ERELEASED') return false
        throw error
      }
    },
  })
}
