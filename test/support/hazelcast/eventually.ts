import { pause } from '../../../packages/conformance/src/time.js'

/** Pause between two attempts, in milliseconds. */
const PAUSE = 20

/**
 * Repeats a task until it succeeds, for example while a cluster is unavailable, and returns its result.
 * @param within time for which the task may fail, in milliseconds
 * @param isExpected whether the task may fail with this error
 */
export async function eventually<T>(
  task: () => Promise<T>,
  within: number,
  isExpected: (error: unknown) => boolean = () => true,
): Promise<T> {
  const end = performance.now() + within
  while (true) {
    try {
      return await task()
    } catch (error) {
      if (!isExpected(error) || performance.now() > end) throw error
      await pause(PAUSE)
    }
  }
}
