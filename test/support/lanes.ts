/** How many are done at a time. */
const LANES = 6

/**
 * Does something with each number of a range, several at a time: each has keys of its own, so one can reckon while the
 * server works for another. Begins no more once one has failed, and settles when those that were begun have ended.
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
