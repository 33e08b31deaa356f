import { VirtualClock, type Clock } from 'signalbox/limits'
import { LocalBell } from './bell.js'
import type { Call } from './call.js'
import type { Run } from './figures.js'
import { RAMP, SECOND, SERVICE_TIME, type Setting } from './setting.js'
import type { Strategy } from './strategies/strategy.js'
import { sleep } from './strategies/waiting.js'

/** Disturbances in a simulation. All times are in milliseconds. */
export interface Trouble {
  /** Scheduled jobs that are due between `from` and `from + by` run at `from + by`. */
  readonly late?: { readonly from: number; readonly by: number }
  /** The callers' thread blocks for `length` every `every`. */
  readonly stall?: { readonly every: number; readonly length: number }
}

/** Time of the virtual clock at the start of a simulation: a whole second, and not 0. */
const START = 1000 * SECOND

/** Runs a strategy under a virtual clock. Calls arrive when they are sent. */
export async function simulate(strategy: Strategy, setting: Setting, trouble: Trouble = {}): Promise<Run> {
  const { workers, limit, seconds } = setting
  const clock = new VirtualClock(START)
  const calls: Call[] = []
  const keeper = trouble.late ? lateClock(clock, trouble.late) : clock
  const throttle = strategy.join(strategy.prepare(limit, 'tasks', 0), {
    limit,
    engine: 'memory:',
    name: 'service',
    // Calls arrive when they are sent.
    jitter: 0,
    clock,
    virtual: clock,
    wall: () => clock.now(),
    keeper,
    bell: new LocalBell(),
  })
  const end = START + seconds * SECOND
  const work = async (): Promise<void> => {
    while (clock.now() < end) {
      const asked = clock.now()
      await throttle.pass()
      calls.push({ asked, sent: clock.now(), arrived: clock.now() })
      await sleep(clock, SERVICE_TIME)
    }
  }
  void work()
  for (let worker = 1; worker < workers; worker++) void sleep(clock, RAMP).then(work)
  await goOn(clock, end, trouble)
  return { calls, startedAt: START, wallOffset: 0, guard: undefined }
}

/** Advances the clock to `end`. Each caller continues when its timer is due, or late if the thread blocks. */
async function goOn(clock: VirtualClock, end: number, { stall }: Trouble): Promise<void> {
  let stallAt = stall ? clock.now() + stall.every : Infinity
  await settled()
  while (clock.now() < end) {
    const next = Math.min(clock.nextAt() ?? end, stallAt, end)
    clock.advance(Math.max(next - clock.now(), 0))
    // The thread never blocks between a timer and the callers that it wakes.
    await settled()
    if (stall && clock.now() >= stallAt) {
      clock.freeze(stall.length)
      stallAt += stall.every
    }
    await settled()
  }
}

/** Returns a clock that delays the tasks of one period to the end of that period. */
function lateClock(clock: Clock, late: { readonly from: number; readonly by: number }): Clock {
  const from = START + late.from
  return {
    now: () => clock.now(),
    after(delay, task, keepAlive) {
      const at = clock.now() + delay
      const isLate = at >= from && at < from + late.by
      return clock.after(isLate ? from + late.by - clock.now() : delay, task, keepAlive)
    },
  }
}

function settled(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}
