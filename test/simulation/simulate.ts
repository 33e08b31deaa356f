import { WATCH_READ_INTERVAL } from '../../src/engine/wait-times.js'
import { MAX_LEASE, longestDelay } from './climate.js'
import type { History, Violation } from './history.js'
import { begin } from './operations.js'
import type { SimulatedProcess } from './process.js'
import { drawSchedule, GROUPED, KEYS, SINGLE } from './schedule.js'
import type { Sources } from './sources.js'
import { World } from './world.js'

export interface Result {
  readonly seed: number
  readonly violation: Violation | undefined
  readonly history: History
}

/**
 * Maximum time from the last fault to the end of all tasks, in milliseconds: the leases of dead processes, and then the
 * tasks one after another.
 */
const DRAINED_WITHIN = 4 * MAX_LEASE
/**
 * Maximum time until every watcher has checked its key, in milliseconds. A check that began before the end of the
 * faults may fail and is repeated.
 */
const LOOKED_WITHIN = WATCH_READ_INTERVAL + 3000
/** Time after which no fault has any effect, in milliseconds. */
const CLEAN_AFTER = MAX_LEASE + 5000
/** Maximum number of steps of a schedule. A schedule with more steps polls. */
const MAX_STEPS = 100_000

/**
 * Runs the schedule of a seed to its end, or to the first broken promise.
 * @param chosen indices of the actions to run; undefined: all
 */
export async function simulate(
  seed: number,
  sources: Sources,
  chosen?: ReadonlySet<number>,
): Promise<Result> {
  const { climate, actions } = drawSchedule(seed)
  const world = new World(seed, climate, sources)
  const { history } = world
  history.note('world', 'climate', climate)
  const stop = watchRejections(history)
  try {
    for (let place = 0; place < climate.processes; place++) world.start(place)
    for (const [index, action] of actions.entries()) {
      if (!chosen || chosen.has(index)) world.timeline.at(action.at, () => begin(world, action))
    }
    await run(world, actions.at(-1)!.at)
    if (!history.violation) await end(world)
  } finally {
    stop()
  }
  return { seed, violation: history.violation, history }
}

/** Ends all faults, and checks that all tasks end and nothing remains. */
async function end(world: World): Promise<void> {
  const { history, timeline, server, store } = world
  world.heal()
  const until = timeline.now + DRAINED_WITHIN
  while (world.tasks.length > 0 && timeline.now < until && !history.violation)
    await run(world, timeline.now + 20)
  const [stuck] = world.tasks
  if (stuck) history.violate('P6', `${stuck.process.name} ${stuck.what} and never comes to an end`)
  if (history.violation) return
  history.note('world', 'has drained')
  store.check(key => server.value(key).value)
  const tidy = world.direct || world.climate.kind === 'calm'
  if (tidy) {
    // The cancellation of the last requests may still be under way.
    await run(world, timeline.now + 4 * longestDelay(world.climate))
    await inspected(world)
    for (const { session, key, phase } of server.inspect())
      history.violate('P8', `all that was begun has ended, and ${session} has left ${key} ${phase}`)
  }
  // A watcher whose hint was lost finds the change with its next check.
  else await run(world, timeline.now + LOOKED_WITHIN)
  world.watchers.check(key => server.value(key).version)
  world.watchers.stop()
  await run(world, timeline.now + CLEAN_AFTER)
  world.watchers.checkEnded()
  for (const process of living(world)) {
    if (process.timers > 0)
      history.violate('P8', `${process.name} does nothing and has ${process.timers} timers`)
  }
  await takeAll(world)
  for (const process of living(world)) world.do(process, 'closes its box', () => process.box!.close())
  await run(world, timeline.now + CLEAN_AFTER)
  for (const process of living(world)) {
    if (process.timers > 0)
      history.violate('P8', `${process.name} is closed and has ${process.timers} timers`)
  }
  for (const { key, phase } of server.inspect())
    history.violate('P8', `all is closed, and ${key} is ${phase}`)
}

async function run(world: World, until: number): Promise<void> {
  const { timeline, history } = world
  await timeline.run(until, () => history.violation !== undefined || timeline.steps > MAX_STEPS)
  if (timeline.steps > MAX_STEPS) history.violate('P5', 'far more happens than the callers have reason for')
}

/** Inspects all locks, and checks that none is held. On inspection, boxes release the grants that they keep unused. */
async function inspected(world: World): Promise<void> {
  const process = world.places.find(one => one.open)
  if (!process) return
  world.do(process, 'inspects', async () => {
    for await (const { key, holders } of process.box!.inspect())
      if (holders.length > 0) world.history.violate('P8', `${key} is held without a user`)
  })
  await run(world, world.timeline.now + 100)
}

/** Checks that all keys are free at once. */
async function takeAll(world: World): Promise<void> {
  const { history } = world
  const process = world.places.find(one => one.open)
  if (!process) return
  const keys = [...KEYS, ...[SINGLE, GROUPED].flatMap(store => KEYS.map(key => `${store}/${key}`))]
  world.do(process, 'takes all keys', async () => {
    const grant = await process.box!.mutex(...keys).tryAcquire()
    if (grant) await grant.release()
    else history.violate('P9', `something still keeps others out of ${keys.join()}`)
  })
  await run(world, world.timeline.now + 1000)
}

function living(world: World): SimulatedProcess[] {
  return world.processes.filter(({ alive }) => alive)
}

/**
 * Records unhandled rejections as violations of the current schedule. The returned function restores the earlier
 * listeners.
 */
function watchRejections(history: History): () => void {
  const others = process.listeners('unhandledRejection')
  const listener = (reason: unknown): void =>
    history.violate(
      'P12',
      `a rejection was not handled: ${reason instanceof Error ? String(reason.stack) : String(reason)}`,
    )
  process.removeAllListeners('unhandledRejection')
  process.on('unhandledRejection', listener)
  return () => {
    process.off('unhandledRejection', listener)
    for (const other of others) process.on('unhandledRejection', other)
  }
}
