import type { Box, LockReport } from '../index.js'

/** The lease of a holder that may learn of a loss only by its next renewal, after a third of this: milliseconds. */
export const TOLD_BY_RENEWAL = 3000

/** Waits for so many milliseconds, at least. */
export function pause(duration: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, duration))
}

/** Keeps the thread busy, so that no timer can run, as a stopped process does. */
export function block(duration: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, duration)
}

/**
 * Waits until a condition holds.
 * @param what the condition, for the error
 * @param most how long it waits at most: milliseconds
 */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  most = 12_000,
): Promise<void> {
  const end = performance.now() + most
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`still waiting until ${what}`)
    await pause(2)
  }
}

/** How much of a time counts in which this process stands still: milliseconds. */
const LONGEST_STALL = 100

/**
 * Milliseconds that something took. When this process stands still meanwhile, as on a busy machine, at most 100 of them
 * count: no engine can do anything about that.
 */
export async function timed(task: () => Promise<unknown>): Promise<number> {
  let took = 0
  let last = performance.now()
  const count = (): void => {
    const now = performance.now()
    took += Math.min(now - last, LONGEST_STALL)
    last = now
  }
  const counting = setInterval(count, 10)
  await task().finally(() => clearInterval(counting))
  count()
  return took
}

/** The state of a promise now. */
export async function soFar<T>(promise: Promise<T>): Promise<'pending' | 'fulfilled' | 'rejected'> {
  const fulfilled = promise.then(
    () => 'fulfilled' as const,
    () => 'rejected' as const,
  )
  return Promise.race([fulfilled, pause(1).then(() => 'pending' as const)])
}

/** The holders and waiters of each key. */
export async function locks(box: Box, prefix?: string): Promise<LockReport[]> {
  const reports: LockReport[] = []
  for await (const report of box.inspect(prefix)) reports.push(report)
  return reports
}

/** Waits until no lock is held or waited for. @param prefix of the keys that count */
export async function nothingHeld(box: Box, prefix?: string): Promise<void> {
  await until('nothing is held', async () => (await locks(box, prefix)).length === 0)
}

/** Waits until so many requests wait in the engine for a key. */
export async function queued(box: Box, key: string, count: number): Promise<void> {
  await until(`${count} wait for ${key}`, async () => {
    const report = (await locks(box, key)).find(one => one.key === key)
    return (report?.waiters.length ?? 0) === count
  })
}
