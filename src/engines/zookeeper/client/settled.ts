import { ConnectionLossError } from './errors.js'
import { insist } from './insist.js'

/**
 * Carries out a step until it is known what became of it: where the answer was lost, `look` finds out. While no server is
 * connected it waits, as long as the session lives.
 * @param look gives what stands for the answer when the step was carried out, and undefined when it was not: then it is
 * carried out again. It reads with `linearizable`, behind which what the lost connection had sent is applied, or never will be.
 * @throws what the step throws; ConnectionLossError when it may have been carried out and looking fails, too, as it does when
 * the session has ended
 */
export async function settled<T>(
  step: () => Promise<T>,
  look: () => Promise<{ readonly answer: T } | undefined>,
): Promise<T> {
  for (;;) {
    try {
      return await insist(step)
    } catch (lost) {
      if (!(lost instanceof ConnectionLossError)) throw lost
      const found = await insist(look).catch(() => {
        throw lost
      })
      if (found) return found.answer
    }
  }
}
