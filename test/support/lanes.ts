/** Number of calls at a time. */
const LANES = 6

/**
 * Calls `work` with each number of a range, several at a time. Each call has keys of its own, so one can compute while
 * the server works for another. Starts no call after a failure, and settles when all started calls have ended.
 */
export async function inLanes(
  first: number,
  count: number,
  work: (number: number) => Promise<void>,
): Promise<void> {
  let next = first
  const lane = async (): Promise<void> => {
    while (next < first + count) await work(next++)
  }
  const lanes = Array.from({ length: LANES }, () => lane())
  try {
    await Promise.all(lanes)
  } finally {
    next = Infinity
    await Promise.allSettled(lanes)
  }
}
