import { CLAIM_WINDOW, HEARTBEAT_INTERVAL } from 'signalbox/engine'
import type { Box, Grant, InspectOptions, LockReport } from 'signalbox'
import { assert } from './assert.js'

/** The lease of a holder that may learn of a loss only by its next renewal, after a third of this, in milliseconds. */
export const NOTIFIED_BY_RENEWAL = 4500

/** The lease of a grant that is to be lost: milliseconds, longer than a busy engine takes to answer. */
export const LAPSING = 1000

/**
 * Maximum time until the next waiter is served after a dead waiter or a lost hint, in milliseconds: a claim window and
 * the interval of signs of life, with a second for a busy machine.
 */
export const PASSED = CLAIM_WINDOW + HEARTBEAT_INTERVAL + 1000

/** Waits for at least this many milliseconds. */
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
 * @param most maximum wait, in milliseconds
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

/** Maximum part of a stall of this process that counts, in milliseconds. */
const MAX_STALL = 100

/**
 * Returns the duration of a task, in milliseconds. Of each stall of this process, as on a busy machine, at most 100 ms
 * count, because no engine can prevent it. The true duration may be longer, so use it only to check a maximum.
 */
export async function timed(task: () => Promise<unknown>): Promise<number> {
  let took = 0
  let last = performance.now()
  const count = (): void => {
    const now = performance.now()
    took += Math.min(now - last, MAX_STALL)
    last = now
  }
  const counting = setInterval(count, 10)
  await task().finally(() => clearInterval(counting))
  count()
  return took
}

/**
 * Watches for stalls of this process or of the engine, during which a check can't judge by time.
 * @returns a function that ends the watch, and resolves with the longest time between two answers, in milliseconds
 */
export function watchStandstills(box: Box): () => Promise<number> {
  let longest = 0
  let isOver = false
  const watching = (async (): Promise<void> => {
    let last = performance.now()
    while (!isOver) {
      await pause(10)
      await box.ping().catch(() => (isOver = true))
      const now = performance.now()
      longest = Math.max(longest, now - last)
      last = now
    }
  })()
  return async () => {
    isOver = true
    await watching
    return longest
  }
}

/**
 * Watches for stalls of this process, as on a busy machine.
 * @returns a function that ends the watch, and returns the longest stall, in milliseconds
 */
export function longestStall(): () => number {
  let longest = 0
  let last = performance.now()
  const look = (): void => {
    const now = performance.now()
    longest = Math.max(longest, now - last)
    last = now
  }
  const looking = setInterval(look, 10)
  return () => {
    clearInterval(looking)
    look()
    return longest
  }
}

/**
 * Releases a grant, and waits for its waiters.
 * @returns whether they were certainly served in order: a waiter that stands still for the claim window loses its turn
 */
export async function handOver(held: Grant, waiting: readonly Promise<unknown>[]): Promise<boolean> {
  const begun = performance.now()
  await held.release()
  await Promise.all(waiting)
  return performance.now() - begun < CLAIM_WINDOW
}

/** Asserts that these were served, and in this order if that is certain. */
export function assertServed(
  served: readonly string[],
  expected: readonly string[],
  isInOrder: boolean,
): void {
  if (isInOrder) assert.deepEqual(served, expected)
  else assert.deepEqual([...served].sort(), [...expected].sort())
}

/** Returns the current state of a promise. */
export async function soFar<T>(promise: Promise<T>): Promise<'pending' | 'fulfilled' | 'rejected'> {
  const fulfilled = promise.then(
    () => 'fulfilled' as const,
    () => 'rejected' as const,
  )
  return Promise.race([fulfilled, pause(1).then(() => 'pending' as const)])
}

/** Returns the holders and waiters of each key. */
export async function locks(box: Box, prefix?: string, options?: InspectOptions): Promise<LockReport[]> {
  const reports: LockReport[] = []
  for await (const report of box.inspect(prefix, options)) reports.push(report)
  return reports
}

/** Waits until no lock is held or waited for. @param prefix of the keys that count */
export async function nothingHeld(box: Box, prefix?: string): Promise<void> {
  await until('nothing is held', async () => (await locks(box, prefix)).length === 0)
}

/** Waits until a box is connected again. */
export function connected(box: Box): Promise<void> {
  return until('it is connected again', () =>
    box.ping().then(
      () => true,
      () => false,
    ),
  )
}

/** Waits until a number of requests wait in the engine for a key. */
export async function queued(box: Box, key: string, count: number): Promise<void> {
  await until(`${count} wait for ${key}`, async () => {
    const [report] = await locks(box, key, { exact: true })
    return (report?.waiters.length ?? 0) === count
  })
}
