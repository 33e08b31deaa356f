import type { Box, LockReport } from '../index.js'

/** Who holds and hears no messages, because it has never had to wait, finds out at a third of this: milliseconds. */
export const TOLD_BY_RENEWAL = 3000

/** Waits for so many milliseconds, at least. */
export function pause(duration: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, duration))
}

/** Keeps the thread busy, so that no timer can run, as a stopped process does. */
export function block(duration: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, duration)
}

/** Waits until something is so; much longer than it should ever take. */
export async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + 12_000
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`still not so: ${what}`)
    await pause(2)
  }
}

/** Milliseconds that something took. */
export async function timed(task: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await task()
  return performance.now() - start
}

/** What became of a promise by now, without waiting for it. */
export async function soFar<T>(promise: Promise<T>): Promise<'pending' | 'fulfilled' | 'rejected'> {
  const fulfilled = promise.then(
    () => 'fulfilled' as const,
    () => 'rejected' as const,
  )
  return Promise.race([fulfilled, pause(1).then(() => 'pending' as const)])
}

/** Who holds and waits, key by key. */
export async function locks(box: Box, prefix?: string): Promise<LockReport[]> {
  const reports: LockReport[] = []
  for await (const report of box.inspect(prefix)) reports.push(report)
  return reports
}

/** Waits until so many requests wait in the engine for a key. */
export async function queued(box: Box, key: string, count: number): Promise<void> {
  await until(`${count} wait for ${key}`, async () => {
    const report = (await locks(box, key)).find(one => one.key === key)
    return (report?.waiters.length ?? 0) === count
  })
}
