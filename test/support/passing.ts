import type { VirtualClock } from '../../src/base/clock.js'

/** Lets everyone continue who can continue without time passing. */
export function settled(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}

/** Lets time pass; a task that falls due meanwhile continues at its time. */
export async function pass(clock: VirtualClock, duration: number): Promise<void> {
  const end = clock.now() + duration
  await settled()
  for (let next = clock.nextAt(); next !== undefined && next <= end; next = clock.nextAt()) {
    clock.advance(Math.max(next - clock.now(), 0))
    await settled()
  }
  // A task may have frozen the clock past the end.
  clock.advance(Math.max(end - clock.now(), 0))
  await settled()
}
