import { Caller } from './caller.js'
import type { Order, Times } from './order.js'
import { realClock, wallOffset } from './real-clock.js'
import type { Bell } from './bell.js'
import { RAMP } from './setting.js'
import { strategy } from './strategies/registry.js'
import { sleepUntil } from './strategies/waiting.js'

/** The parts that each thread of callers has for itself. */
export interface Part {
  /** Whether this thread runs the scheduled jobs. */
  readonly keeps: boolean
  readonly bell: Bell
  readonly shared: unknown
  /** Called when all callers are connected. Resolves with the times of the run. */
  readonly ready: () => Promise<Times>
}

/** Runs the workers of one thread until the run is over. */
export async function callers(order: Order, part: Part): Promise<void> {
  const { setting, stall, workers } = order
  const offset = wallOffset()
  const connected = workers.map(worker => ({ worker, caller: new Caller(order) }))
  await Promise.all(connected.map(({ caller }) => caller.ready()))
  const { startAt, endAt } = await part.ready()
  await sleepUntil(realClock, startAt)
  const throttle = strategy(order.strategy).join(part.shared, {
    limit: setting.limit,
    engine: order.engine,
    name: order.name,
    jitter: order.jitter,
    clock: realClock,
    virtual: undefined,
    wall: () => realClock.now() + offset,
    keeper: part.keeps ? realClock : undefined,
    bell: part.bell,
  })
  if (stall) standStill(stall, workers[0] ?? 0)
  await Promise.all(
    connected.map(({ worker, caller }) =>
      caller.work(throttle, { startAt: worker === 0 ? startAt : startAt + RAMP, endAt }),
    ),
  )
}

/** Blocks this thread repeatedly, at other times than other threads. */
function standStill({ every, length }: NonNullable<Order['stall']>, thread: number): void {
  const nowhere = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  const next = (delay: number): void => {
    realClock.after(
      delay,
      () => {
        Atomics.wait(nowhere, 0, 0, length)
        next(every)
      },
      false,
    )
  }
  next(every * ((0.4 + thread * 0.618) % 1))
}
