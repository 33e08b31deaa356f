import { pause } from '../../../packages/conformance/src/time.js'

/** Milliseconds between two tries. */
const PAUSE = 20

/**
 * What comes of a task once the cluster is in use again; until then it fails, which is right.
 * @param within how long it may fail before the error is thrown, in milliseconds.
 * @param isRight whether it may fail so.
 */
export async function eventually<T>(
  task: () => Promise<T>,
  within: number,
  isRight: (error: unknown) => boolean = () => true,
): Promise<T> {
  const end = performance.now() + within
  while (true) {
    try {
      return await task()
    } catch (error) {
      if (!isRight(error) || performance.now() > end) throw error
      await pause(PAUSE)
    }
  }
}
