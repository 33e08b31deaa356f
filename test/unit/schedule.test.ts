import { expect, onTestFinished, test, vi } from 'vitest'
import { Box } from '../../src/box.js'
import { VirtualClock } from '../../src/base/clock.js'
import { FaultInjectingEngine } from '../../packages/conformance/src/fault-injecting-engine.js'
import { MemoryEngine, MemorySpace } from '../../src/engines/memory/memory-engine.js'
import {
  AbortedError,
  ClosedError,
  InvalidArgumentError,
  LostError,
  UnavailableError,
} from '../../src/base/errors.js'
import type { Grant, Schedule, Slot, Times } from '../../src/index.js'
import { pass, settled } from '../support/passing.js'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const NIGHTLY = { cron: '0 3 * * *' }
const outage = new UnavailableError('an outage')

/** Processes of a fleet on one virtual clock, each with a box. */
class Fleet {
  readonly clock: VirtualClock
  readonly #space: MemorySpace
  /** The time and the slot of each run. */
  readonly runs: string[] = []

  constructor(start: string) {
    this.clock = new VirtualClock(Date.parse(start))
    this.#space = new MemorySpace(this.clock)
  }

  async process(clock = this.clock): Promise<{ box: Box; engine: FaultInjectingEngine }> {
    const engine = new FaultInjectingEngine(new MemoryEngine('memory:', this.#space, this.clock))
    engine.wallClock = () => Promise.resolve(this.clock.now())
    const box = await Box.join(engine, clock)
    onTestFinished(() => box.close())
    return { box, engine }
  }

  /** A task that records its run, and ends at once. */
  task = (_: Grant, slot: Slot): void => {
    this.runs.push(this.run(slot))
  }

  run({ at }: Slot): string {
    const now = new Date(this.clock.now()).toISOString()
    return now === at.toISOString() ? now : `${at.toISOString()} at ${now}`
  }
}

function times(schedule: Schedule): string | undefined {
  return schedule.next?.at.toISOString()
}

function sleep(clock: VirtualClock, duration: number): Promise<void> {
  return new Promise(resolve => void clock.after(duration, resolve))
}

/** Returns the start of each run of a schedule within a duration. */
async function runsOf(options: { start: string; times: Times; duration: number }): Promise<string[]> {
  const fleet = new Fleet(options.start)
  const { box } = await fleet.process()
  box.schedule('job', options.times, fleet.task)
  await pass(fleet.clock, options.duration)
  return fleet.runs
}

test('each slot runs once in a fleet, at its time', async () => {
  const fleet = new Fleet('2026-03-02T14:00:00Z')
  const processes = await Promise.all([fleet.process(), fleet.process(), fleet.process()])
  const schedules = processes.map(({ box }) => box.schedule('nightly', NIGHTLY, fleet.task))
  expect(schedules.map(times)).toEqual(Array(3).fill('2026-03-03T03:00:00.000Z'))
  await pass(fleet.clock, 12 * HOUR)
  expect(fleet.runs).toEqual([])
  await pass(fleet.clock, 2 * DAY)
  expect(fleet.runs).toEqual(['2026-03-03T03:00:00.000Z', '2026-03-04T03:00:00.000Z'])
  expect(schedules.map(times)).toEqual(Array(3).fill('2026-03-05T03:00:00.000Z'))
})

test('a period of 40 days, which is longer than a timer of the runtime, is kept exactly', async () => {
  const start = new Date(511 * 40 * DAY - 5 * MINUTE)
  const runs = await runsOf({
    start: start.toISOString(),
    times: { every: '40d' },
    duration: 40 * DAY + 10 * MINUTE,
  })
  expect(runs).toEqual([511, 512].map(period => new Date(period * 40 * DAY).toISOString()))
})

test.each([
  ['Europe/Berlin', '2026-03-28T00:00:00Z', ['28T01:30', '29T01:00', '30T00:30']],
  ['Europe/Berlin', '2026-10-24T00:00:00Z', ['24T00:30', '25T00:30', '26T01:30']],
  ['America/New_York', '2026-03-07T00:00:00Z', ['07T07:30', '08T07:00', '09T06:30']],
  ['America/New_York', '2026-10-31T00:00:00Z', ['31T06:30', '01T07:30', '02T07:30']],
])(
  'a job at 2:30 runs each day in %s, also when the clocks change after %s',
  async (timeZone, start, ends) => {
    const runs = await runsOf({ start, times: { cron: '30 2 * * *', timeZone }, duration: 3 * DAY })
    expect(runs.map(run => run.slice(8, 16))).toEqual(ends)
  },
)

test.each([
  // The time from 2:00 to 3:00 does not exist.
  ['Europe/Berlin', '2026-03-29T00:10:00Z', 4],
  ['America/New_York', '2026-03-08T06:10:00Z', 4],
  // The time from 2:00 to 3:00, or from 1:00 to 2:00, occurs twice.
  ['Europe/Berlin', '2026-10-24T23:10:00Z', 4],
  ['America/New_York', '2026-11-01T04:10:00Z', 4],
])(
  'a job of each hour runs each hour in %s when the clocks change after %s',
  async (timeZone, start, count) => {
    const runs = await runsOf({ start, times: { cron: '0 * * * *', timeZone }, duration: 4 * HOUR })
    const first = Math.ceil(Date.parse(start) / HOUR) * HOUR
    expect(runs).toEqual(
      Array.from({ length: count }, (_, hour) => new Date(first + hour * HOUR).toISOString()),
    )
  },
)

test('a first deployment does not run the slot that began before it, unless it catches up', async () => {
  const fleet = new Fleet('2026-03-02T14:00:00Z')
  const { box } = await fleet.process()
  box.schedule('skips', NIGHTLY, fleet.task)
  await settled()
  expect(fleet.runs).toEqual([])
  box.schedule('catches up', NIGHTLY, fleet.task, { catchUp: true })
  await settled()
  expect(fleet.runs).toEqual(['2026-03-02T03:00:00.000Z at 2026-03-02T14:00:00.000Z'])
})

test.each([false, true])(
  'while no process is up, slots are missed; with catchUp %s the last one runs late or not',
  async catchUp => {
    const fleet = new Fleet('2026-03-02T14:00:00Z')
    const first = await fleet.process()
    first.box.schedule('nightly', NIGHTLY, fleet.task)
    await pass(fleet.clock, DAY)
    await first.box.close()
    await pass(fleet.clock, 3 * DAY)
    const second = await fleet.process()
    second.box.schedule('nightly', NIGHTLY, fleet.task, { catchUp })
    await pass(fleet.clock, DAY)
    const late = ['2026-03-06T03:00:00.000Z at 2026-03-06T14:00:00.000Z']
    expect(fleet.runs).toEqual([
      '2026-03-03T03:00:00.000Z',
      ...(catchUp ? late : []),
      '2026-03-07T03:00:00.000Z',
    ])
  },
)

test.each([false, true])(
  'a machine that slept through a slot: with catchUp %s it runs late or not',
  async catchUp => {
    const fleet = new Fleet('2026-03-02T02:50:00Z')
    const { box } = await fleet.process()
    box.schedule('nightly', NIGHTLY, fleet.task, { catchUp })
    await settled()
    fleet.clock.freeze(6 * HOUR)
    await pass(fleet.clock, DAY)
    const late = ['2026-03-02T03:00:00.000Z at 2026-03-02T08:50:00.000Z']
    expect(fleet.runs.slice(catchUp ? 1 : 0)).toEqual([...(catchUp ? late : []), '2026-03-03T03:00:00.000Z'])
  },
)

test('a slot that begins while the engine has not yet replied runs', async () => {
  const fleet = new Fleet('2026-03-02T02:59:59Z')
  const { box, engine } = await fleet.process()
  engine.wallClock = () => sleep(fleet.clock, 3 * SECOND).then(() => fleet.clock.now())
  box.schedule('nightly', NIGHTLY, fleet.task)
  await pass(fleet.clock, MINUTE)
  expect(fleet.runs).toEqual([expect.stringContaining('2026-03-02T03:00:00.000Z at 2026-03-02T03:00:0')])
})

test('a timer that is half a minute late is on time', async () => {
  const fleet = new Fleet('2026-03-02T02:59:50Z')
  const { box } = await fleet.process()
  box.schedule('nightly', NIGHTLY, fleet.task)
  await settled()
  fleet.clock.freeze(40 * SECOND)
  await pass(fleet.clock, SECOND)
  expect(fleet.runs).toEqual(['2026-03-02T03:00:00.000Z at 2026-03-02T03:00:30.000Z'])
})

test.each([false, true])(
  'slots that begin during a run never run at the same time; with catchUp %s the last one runs after it or not',
  async catchUp => {
    const fleet = new Fleet('2026-03-02T14:00:30Z')
    const processes = await Promise.all([fleet.process(), fleet.process()])
    let running = 0
    const task = async (_: Grant, slot: Slot): Promise<void> => {
      expect(++running).toBe(1)
      fleet.runs.push(fleet.run(slot))
      if (slot.at.getUTCMinutes() === 1) await sleep(fleet.clock, 150 * SECOND)
      running--
    }
    for (const { box } of processes) box.schedule('sync', { every: '1m' }, task, { catchUp })
    await pass(fleet.clock, 4 * MINUTE + 15 * SECOND)
    const late = ['2026-03-02T14:03:00.000Z at 2026-03-02T14:03:30.000Z']
    expect(fleet.runs.slice(catchUp ? 1 : 0)).toEqual([
      '2026-03-02T14:01:00.000Z',
      ...(catchUp ? late : []),
      '2026-03-02T14:04:00.000Z',
    ])
  },
)

test('a slot whose task fails is done, and its error is reported once', async () => {
  const fleet = new Fleet('2026-03-02T02:59:00Z')
  const errors: unknown[] = []
  for (const { box } of await Promise.all([fleet.process(), fleet.process()])) {
    const failing = (grant: Grant, slot: Slot): never => {
      fleet.task(grant, slot)
      throw new Error('of the task')
    }
    box.schedule('nightly', NIGHTLY, failing, {
      onError: (error, slot) => errors.push([(error as Error).message, slot.at.toISOString()]),
    })
  }
  await pass(fleet.clock, 2 * MINUTE)
  expect(fleet.runs).toEqual(['2026-03-02T03:00:00.000Z'])
  expect(errors).toEqual([['of the task', '2026-03-02T03:00:00.000Z']])
})

test('without onError, and if onError fails, an error is a warning of the process', async () => {
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
  const fleet = new Fleet('2026-03-02T14:00:59Z')
  const { box } = await fleet.process()
  const failing = (): never => {
    throw new Error('of the task')
  }
  box.schedule('a', { every: '1m' }, failing)
  box.schedule('b', { every: '1m' }, failing, { onError: () => Promise.reject(new Error('of onError')) })
  await pass(fleet.clock, 2 * SECOND)
  expect(warn.mock.calls.map(([text]) => text)).toEqual([
    "schedule 'a' failed for 1m from 2026-03-02T14:01:00.000Z: of the task",
    "schedule 'b' got an error of onError for 1m from 2026-03-02T14:01:00.000Z: of onError",
  ])
})

test('if a process stops responding during a run, another one runs the slot when the lease is over', async () => {
  const fleet = new Fleet('2026-03-02T02:59:00Z')
  const [dead, other] = await Promise.all([fleet.process(), fleet.process()])
  const never = async (grant: Grant, slot: Slot): Promise<void> => {
    fleet.task(grant, slot)
    await dead.engine.freeze()
    await new Promise<void>(resolve => onTestFinished(() => resolve()))
  }
  dead.box.schedule('nightly', NIGHTLY, never, { lease: '10s', onError: () => undefined })
  await settled()
  other.box.schedule('nightly', NIGHTLY, fleet.task)
  await pass(fleet.clock, 5 * MINUTE)
  expect(fleet.runs).toHaveLength(2)
  expect(fleet.runs[1]).toMatch(/^2026-03-02T03:00:00.000Z at 2026-03-02T03:00:1\d/)
  await other.box.close()
})

test('a process that loses its grant during a run reports it, and runs the slot again', async () => {
  const fleet = new Fleet('2026-03-02T02:59:00Z')
  const { box } = await fleet.process()
  const operator = await fleet.process()
  const errors: unknown[] = []
  const task = async (grant: Grant, slot: Slot): Promise<void> => {
    fleet.task(grant, slot)
    if (fleet.runs.length > 1) return
    const lost = new Promise((_, reject) => {
      grant.signal.addEventListener('abort', () => reject(grant.signal.reason as Error))
    })
    await Promise.all([lost, operator.box.forceRelease('nightly', grant.token)])
  }
  box.schedule('nightly', NIGHTLY, task, { onError: error => errors.push(error) })
  await pass(fleet.clock, 5 * MINUTE)
  expect(fleet.runs).toEqual([
    '2026-03-02T03:00:00.000Z',
    '2026-03-02T03:00:00.000Z at 2026-03-02T03:00:01.000Z',
  ])
  expect(errors).toEqual([expect.any(LostError)])
})

test('an error of a run names its slot, also an AbortedError of a request of the task', async () => {
  const fleet = new Fleet('2026-03-02T14:00:30Z')
  const { box } = await fleet.process()
  const operator = await fleet.process()
  const errors: unknown[] = []
  const held = await operator.box.mutex('sync').acquire()
  await operator.box.mutex('other').acquire()
  const task = async (grant: Grant, slot: Slot): Promise<void> => {
    fleet.task(grant, slot)
    if (fleet.runs.length > 1) return
    await Promise.all([
      box.mutex('other').acquire({ signal: grant.signal }),
      operator.box.forceRelease('sync', grant.token),
    ])
  }
  box.schedule('sync', { every: '1m' }, task, {
    onError: (error, slot) => errors.push([error, slot.at.toISOString()]),
  })
  // The schedule waits for its lock until the second slot has begun.
  await pass(fleet.clock, 2 * MINUTE)
  await held.release()
  await pass(fleet.clock, 10 * SECOND)
  expect(errors).toEqual([[expect.any(AbortedError), '2026-03-02T14:02:00.000Z']])
})

test('an outage at the time of a slot delays its run', async () => {
  const fleet = new Fleet('2026-03-02T02:59:00Z')
  const { box, engine } = await fleet.process()
  const errors: unknown[] = []
  box.schedule('nightly', NIGHTLY, fleet.task, { onError: error => errors.push(error) })
  await settled()
  engine.fail(['enqueue'], outage)
  engine.wallClock = () => Promise.reject(outage)
  await pass(fleet.clock, 20 * MINUTE)
  expect(errors.length).toBeLessThan(130)
  expect(errors[0]).toMatchObject({ code: 'UNAVAILABLE' })
  engine.restore()
  engine.wallClock = () => Promise.resolve(fleet.clock.now())
  await pass(fleet.clock, 10 * SECOND)
  expect(fleet.runs).toEqual([expect.stringMatching(/^2026-03-02T03:00:00.000Z at 2026-03-02T03:19/)])
})

test.each<{ times: Times; outage: number; after: number; slots: number }>([
  { times: { every: '2s' }, outage: 19 * SECOND, after: 20 * SECOND, slots: 10 },
  { times: { every: '5m' }, outage: 40 * MINUTE, after: 20 * MINUTE, slots: 4 },
  { times: { cron: '2,17,19 * * * *' }, outage: 17 * MINUTE - SECOND, after: 3 * MINUTE, slots: 2 },
])(
  'after an outage, each slot of $times that begins while the engine can be reached runs at its time',
  async ({ times: each, outage: length, after, slots }) => {
    const fleet = new Fleet('2026-03-02T12:00:00Z')
    const processes = await Promise.all([fleet.process(), fleet.process(), fleet.process()])
    for (const { box } of processes) box.schedule('job', each, fleet.task, { onError: () => undefined })
    await settled()
    for (const { engine } of processes) {
      engine.fail(['enqueue', 'read'], outage)
      engine.wallClock = () => Promise.reject(outage)
    }
    await pass(fleet.clock, length)
    expect(fleet.runs).toEqual([])
    for (const { engine } of processes) engine.restore()
    await pass(fleet.clock, after)
    const atTheirTimes = fleet.runs.filter(run => !run.includes(' at '))
    expect(atTheirTimes).toHaveLength(slots)
  },
)

test('a run that can not be recorded is not repeated by its own process', async () => {
  const fleet = new Fleet('2026-03-02T02:59:00Z')
  const { box, engine } = await fleet.process()
  const errors: unknown[] = []
  engine.fail(['commit'], outage)
  box.schedule('nightly', NIGHTLY, fleet.task, { onError: error => errors.push(error) })
  await pass(fleet.clock, DAY)
  expect(fleet.runs).toHaveLength(1)
  expect(errors).toEqual([outage])
})

test('slots begin by the clock of the engine, whatever the clock of the process shows', async () => {
  for (const skew of [-400 * DAY, -2 * HOUR, 30 * SECOND, 2 * HOUR]) {
    const fleet = new Fleet('2026-03-02T02:00:00Z')
    const own = new VirtualClock(fleet.clock.now() + skew)
    const { box, engine } = await fleet.process(own)
    engine.wallClock = () => Promise.resolve(own.now() - skew)
    const slots: string[] = []
    box.schedule('nightly', NIGHTLY, (_, { at }) => {
      slots.push(`${at.toISOString()} at ${new Date(own.now() - skew).toISOString()}`)
    })
    await pass(own, 3 * HOUR)
    expect(slots).toEqual(['2026-03-02T03:00:00.000Z at 2026-03-02T03:00:00.000Z'])
  }
})

test('if the clock of the engine is set back at the time of a slot, no earlier slot runs', async () => {
  const fleet = new Fleet('2026-03-02T03:10:00Z')
  const { box, engine } = await fleet.process()
  box.schedule('hourly', { every: '1h' }, fleet.task)
  await settled()
  engine.intercept = (_, execute) => {
    engine.wallClock = () => Promise.resolve(fleet.clock.now() - 20 * SECOND)
    return execute()
  }
  await pass(fleet.clock, HOUR)
  expect(fleet.runs).toEqual(['2026-03-02T04:00:00.000Z at 2026-03-02T04:00:20.000Z'])
})

test('a schedule that is stopped before its task is called does not call it', async () => {
  const fleet = new Fleet('2026-03-02T14:00:59Z')
  const { box, engine } = await fleet.process()
  const schedule = box.schedule('sync', { every: '1m' }, fleet.task)
  await settled()
  let stopped: Promise<void> | undefined
  engine.intercept = ({ type }, execute) => {
    if (type === 'read') stopped = schedule.stop()
    return execute()
  }
  await pass(fleet.clock, MINUTE)
  await stopped
  expect(stopped).toBeDefined()
  expect(fleet.runs).toEqual([])
})

test.each([
  ['forward past a slot', 2 * HOUR, ['2026-03-03T03:00:00.000Z', '2026-03-04T03:00:00.000Z']],
  ['back by an hour', -HOUR, ['2026-03-02T03:00:00.000Z', '2026-03-03T03:00:00.000Z']],
  ['back by 400 days', -400 * DAY, ['2025-01-26T03:00:00.000Z', '2025-01-27T03:00:00.000Z']],
])("when the engine's clock is set %s, the schedule follows within a minute", async (_, change, slots) => {
  const fleet = new Fleet('2026-03-02T02:00:00Z')
  const { box, engine } = await fleet.process()
  const seen: string[] = []
  let shift = 0
  engine.wallClock = () => Promise.resolve(fleet.clock.now() + shift)
  box.schedule('nightly', NIGHTLY, (_grant, { at }) => void seen.push(at.toISOString()))
  await pass(fleet.clock, 30 * MINUTE)
  shift = change
  await pass(fleet.clock, 2 * DAY - HOUR)
  expect(seen).toEqual(slots)
})

test('close aborts the grant of a run, waits for its task, and lets another process run the slot', async () => {
  const fleet = new Fleet('2026-03-02T02:59:00Z')
  const [one, other] = await Promise.all([fleet.process(), fleet.process()])
  const events: string[] = []
  const task = async (grant: Grant): Promise<void> => {
    events.push('began')
    await new Promise<void>(resolve => grant.signal.addEventListener('abort', () => resolve()))
    await sleep(fleet.clock, SECOND)
    events.push('ended')
  }
  const errors: unknown[] = []
  const schedule = one.box.schedule('nightly', NIGHTLY, task, { onError: error => errors.push(error) })
  await settled()
  other.box.schedule('nightly', NIGHTLY, fleet.task)
  await pass(fleet.clock, 2 * MINUTE)
  const closed = one.box.close().then(() => events.push('closed'))
  await pass(fleet.clock, 10 * SECOND)
  await closed
  expect(events).toEqual(['began', 'ended', 'closed'])
  expect(schedule.next).toBeUndefined()
  expect(errors).toEqual([])
  await pass(fleet.clock, MINUTE)
  expect(fleet.runs).toEqual([expect.stringMatching(/^2026-03-02T03:00:00.000Z at 2026-03-02T03:01/)])
})

test.each(['stop', 'drain'] as const)('%s waits for the run in progress, which counts', async way => {
  const fleet = new Fleet('2026-03-02T14:00:30Z')
  const [one, other] = await Promise.all([fleet.process(), fleet.process()])
  let isAborted = false
  const task = async (grant: Grant, slot: Slot): Promise<void> => {
    fleet.task(grant, slot)
    await sleep(fleet.clock, 20 * SECOND)
    isAborted = grant.signal.aborted
  }
  const schedule = one.box.schedule('sync', { every: '1m' }, task)
  await settled()
  other.box.schedule('sync', { every: '1m' }, fleet.task)
  await pass(fleet.clock, 40 * SECOND)
  let isOver = false
  const stopped = (way === 'stop' ? schedule.stop() : one.box.close({ drain: true })).then(
    () => (isOver = true),
  )
  await pass(fleet.clock, 5 * SECOND)
  expect(isOver).toBe(false)
  await pass(fleet.clock, 10 * SECOND)
  await stopped
  expect(isAborted).toBe(false)
  await pass(fleet.clock, MINUTE)
  expect(fleet.runs).toEqual(['2026-03-02T14:01:00.000Z', '2026-03-02T14:02:00.000Z'])
})

test('a stopped schedule sets no timer, and its name can be used again', async () => {
  const fleet = new Fleet('2026-03-02T14:00:30Z')
  const { box } = await fleet.process()
  {
    await using schedule = box.schedule('sync', { every: '1m' }, fleet.task)
    expect(() => box.schedule('sync', { every: '1h' }, fleet.task)).toThrow(/already has a schedule "sync"/)
    expect(schedule.name).toBe('sync')
    await settled()
  }
  expect(fleet.clock.nextAt()).toBeUndefined()
  box.schedule('sync', { every: '1m' }, fleet.task)
  await pass(fleet.clock, MINUTE)
  expect(fleet.runs).toHaveLength(1)
})

test.each([
  ['stop', (_: Box, schedule: Schedule) => schedule.stop()],
  ['close', (box: Box) => box.close()],
])('the task itself can call %s', async (_, end) => {
  const fleet = new Fleet('2026-03-02T14:00:30Z')
  const { box } = await fleet.process()
  const schedule: Schedule = box.schedule('sync', { every: '1m' }, async (grant, slot) => {
    fleet.task(grant, slot)
    await end(box, schedule)
    fleet.runs.push('ended')
  })
  await pass(fleet.clock, 5 * MINUTE)
  expect(fleet.runs).toEqual(['2026-03-02T14:01:00.000Z', 'ended'])
  expect(schedule.next).toBeUndefined()
})

test('a schedule that a holder of its lock starts waits for that lock', async () => {
  const fleet = new Fleet('2026-03-02T14:00:30Z')
  const { box } = await fleet.process()
  await box.mutex('sync').run(async () => {
    box.schedule('sync', { every: '1m' }, fleet.task)
    await pass(fleet.clock, 45 * SECOND)
    expect(fleet.runs).toEqual([])
  })
  await settled()
  expect(fleet.runs).toEqual(['2026-03-02T14:01:00.000Z at 2026-03-02T14:01:15.000Z'])
})

test('a schedule ends after the last time of its pattern', async () => {
  const fleet = new Fleet('2026-03-02T14:00:30Z')
  const { box } = await fleet.process()
  const schedule = box.schedule('launch', { cron: '0 0 15 2 3 * 2026' }, fleet.task)
  await pass(fleet.clock, 2 * HOUR)
  expect(fleet.runs).toEqual(['2026-03-02T15:00:00.000Z'])
  expect(schedule.next).toBeUndefined()
  expect(fleet.clock.nextAt()).toBeUndefined()
})

test('a schedule and oncePer do a slot once together', async () => {
  const fleet = new Fleet('2026-03-02T14:59:00Z')
  const { box } = await fleet.process()
  box.schedule('sync', { every: '1h' }, fleet.task)
  await pass(fleet.clock, 2 * MINUTE)
  expect(await box.oncePer('sync', '1h', () => 'again')).toMatchObject({ ran: false })
  expect(fleet.runs).toHaveLength(1)
})

test('an engine without values is reported at once', async () => {
  const fleet = new Fleet('2026-03-02T14:00:00Z')
  const { box, engine } = await fleet.process()
  const errors: unknown[] = []
  const refused = new InvalidArgumentError('this engine keeps no values')
  engine.fail(['read'], refused)
  const schedule = box.schedule('nightly', NIGHTLY, fleet.task, { onError: error => errors.push(error) })
  await settled()
  expect(errors).toEqual([refused])
  expect(schedule.next).toBeUndefined()
})

test('an engine that ends the session ends its schedules, with a report', async () => {
  const fleet = new Fleet('2026-03-02T14:00:00Z')
  const { box, engine } = await fleet.process()
  const errors: unknown[] = []
  let end: ((cause: Error) => void) | undefined
  const join = engine.join.bind(engine)
  engine.join = (member, listener) => {
    end = cause => listener.ended(cause)
    return join(member, listener)
  }
  const other = await Box.join(engine, fleet.clock)
  const schedule = other.schedule('nightly', NIGHTLY, fleet.task, { onError: error => errors.push(error) })
  await settled()
  end!(outage)
  await settled()
  expect(errors).toEqual([outage])
  expect(schedule.next).toBeUndefined()
  expect(() => other.schedule('nightly', NIGHTLY, fleet.task)).toThrow(outage)
  await box.close()
  expect(() => box.schedule('nightly', NIGHTLY, fleet.task)).toThrow(ClosedError)
})

test.each<[unknown, RegExp]>([
  [NIGHTLY.cron, /times must be \{ cron \} or \{ every \}, not "0 3 \* \* \*"/],
  [{ cron: 'at noon' }, /cron must be a pattern like '0 3 \* \* \*', not "at noon"/],
  [{ cron: '*/0 * * * *' }, /not "\*\/0 \* \* \* \*": CronPattern: Syntax error, illegal stepping: 0/],
  [{ cron: '0 3 31 2 *' }, /cron must have a time in the future, unlike "0 3 31 2 \*"/],
  [{ every: '1d', cron: '0 3 * * *' }, /times must have either cron or every, not both/],
])('times of %j are refused at once', async (times, message) => {
  const { box } = await new Fleet('2026-03-02T14:00:00Z').process()
  expect(() => box.schedule('nightly', times as Times, () => undefined)).toThrow(message)
  expect(() => box.schedule('nightly', times as Times, () => undefined)).toThrow(InvalidArgumentError)
})
