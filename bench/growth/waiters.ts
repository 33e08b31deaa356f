import type { Box } from 'signalbox'
import { lockCycles, type Cycler } from '../file/lock-cycles.js'
import type { Locker } from '../lockers/locker.js'
import { forked, type ForkedSubject } from '../processes/forked.js'
import type { Performer, Setting } from '../processes/performer.js'
import type { Work } from '../work.js'
import { comparedToFirst } from './compared.js'
import type { Engine } from './engines.js'

const PROCESSES = 4
/** Number of boxes that the waiters share. */
const BOXES = 20
const NEIGHBOURS = [1, 100, 1000]
const TURNS = [10, 100, 1000]
/** Each waiter has its own place in the queue, like callers of different boxes. */
const REQUEST = { ownRequest: true }

/** A lone lock while requests of other boxes wait for one key that is held. */
export function besideWaiters({ part, name: engine, signalbox, openBox }: Engine): Work {
  const subject = (size: number): ForkedSubject =>
    forked(
      waiting(size),
      setting => (setting.process === 0 ? waitingProcess(openBox, setting, size) : lone(openBox, setting)),
      {
        processes: 2,
        support: signalbox.support,
        growth: {
          picture: `${engine}: requests that wait for another key`,
          line: 'signalbox',
          size,
          unit: 'waiting',
        },
      },
    )
  return {
    part,
    name: `${engine}: lock and unlock one key next to requests that wait for another`,
    seconds: 1,
    subjects: NEIGHBOURS.map(subject),
    comparisons: comparedToFirst(NEIGHBOURS.map(waiting), { atLeast: 0.9 }),
  }
}

/** Turns of many waiters of 20 boxes for one key. */
export function turnsOfWaiters({ part, name: engine, signalbox, openBox }: Engine): Work {
  const subject = (size: number): ForkedSubject =>
    forked(waiting(size), setting => turns(openBox, setting, size), {
      processes: PROCESSES,
      support: signalbox.support,
      growth: { picture: `${engine}: waiters for one key`, line: 'signalbox', size, unit: 'waiters' },
    })
  return {
    part,
    name: `${engine}: turns of the waiters of ${BOXES} boxes on one key`,
    seconds: 3,
    mostRounds: 3,
    subjects: TURNS.map(subject),
    comparisons: comparedToFirst(TURNS.map(waiting), { atLeast: 0.5 }),
  }
}

function waiting(size: number): string {
  return `${size} ${size === 1 ? 'request waits' : 'requests wait'}`
}

/** Holds a key while `size` requests wait for it, and does nothing else. */
async function waitingProcess(
  openBox: Engine['openBox'],
  { folder }: Setting,
  size: number,
): Promise<Performer> {
  const boxes = await Promise.all(Array.from({ length: BOXES }, () => openBox(folder)))
  const held = await boxes[0]!.mutex('held').acquire()
  const abort = new AbortController()
  const requests = Array.from({ length: size }, (_, index) =>
    boxes[index % BOXES]!.mutex('held').acquire({ ...REQUEST, signal: abort.signal }),
  )
  const settled = Promise.allSettled(requests)
  await queued(boxes[0]!, size)
  return {
    perform: async () => ({ operations: 0, perBox: [], waits: new Float64Array() }),
    async stop() {
      abort.abort()
      await settled
      await held.release()
      await Promise.all(boxes.map(box => box.close()))
    },
  }
}

/** Waits until `size` requests are in the queue. */
async function queued(box: Box, size: number): Promise<void> {
  for (let waiters = 0; waiters < size;) {
    waiters = 0
    for await (const report of box.inspect('held')) waiters = report.waiters.length
  }
}

async function lone(openBox: Engine['openBox'], { folder }: Setting): Promise<Performer> {
  const box = await openBox(folder)
  return {
    async perform(window) {
      const { operations, waits } = await lockCycles(window, [{ locker: lockerOf(box), key: 'key' }])
      return { operations, waits, perBox: [] }
    },
    stop: () => box.close(),
  }
}

async function turns(
  openBox: Engine['openBox'],
  { folder, process, processes }: Setting,
  size: number,
): Promise<Performer> {
  const own = BOXES / processes
  const boxes = await Promise.all(Array.from({ length: own }, () => openBox(folder)))
  const lockers = boxes.map(lockerOf)
  const cyclers: Cycler[] = []
  for (let task = process; task < size; task += processes)
    cyclers.push({ locker: lockers[cyclers.length % own]!, key: 'key' })
  return {
    async perform(window) {
      const { perTask: perBox, ...performance } = await lockCycles(window, cyclers)
      return { ...performance, perBox }
    },
    async stop() {
      await Promise.all(boxes.map(box => box.close()))
    },
  }
}

function lockerOf(box: Box): Locker {
  return {
    async lock(key) {
      const grant = await box.mutex(key).acquire(REQUEST)
      return { token: grant.token, unlock: () => grant.release() }
    },
    close: () => box.close(),
  }
}
