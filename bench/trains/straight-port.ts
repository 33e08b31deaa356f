import { setTimeout as pause } from 'node:timers/promises'
import { openTimetable } from '../../apps/trains/gtfs/gtfs-source.js'
import type { Message } from '../../apps/trains/messages/message.js'
import { now } from '../clock.js'
import type { Held, LockLibrary, Locker } from '../lockers/locker.js'
import { packageFile } from '../package.js'
import { forked, type ForkedSubject } from '../processes/forked.js'
import type { Performance, Window } from '../processes/performer.js'
import { WaitLog } from '../wait-log.js'

/** Number of trains that one process handles at the same time. */
const AT_ONCE = 16

/** A lock library with stored objects. */
export interface ObjectLocker extends Locker {
  get(key: string): Promise<string | null>
  set(key: string, value: string): Promise<unknown>
  delete(key: string): Promise<unknown>
}

/** A message of any of the three types. */
interface TrainMessage extends Message {
  readonly train: string
  readonly location?: string
  readonly to?: string
}

/**
 * The train tracker written directly with locks, without transactions. It handles the messages of each train one after
 * another, locks keys one by one in their order, and reads and writes each object separately.
 */
export function straightPort(
  name: string,
  processes: number,
  support: LockLibrary['support'],
  open: (folder: string) => Promise<ObjectLocker>,
): ForkedSubject {
  return forked(
    name,
    async ({ folder, process }) => {
      const locker = await open(folder)
      const trains = (await trainsOfDay()).filter((_, index) => index % processes === process)
      return { perform: window => drive(locker, trains, window), stop: () => locker.close() }
    },
    { processes, support },
  )
}

/** The bundled timetable has no faults. */
const faultless = { rejected: () => undefined, repaired: () => undefined }

/** Returns the messages of one day, grouped by train. */
async function trainsOfDay(): Promise<TrainMessage[][]> {
  const path = packageFile('apps/trains/data/caltrain-gtfs')
  const source = await openTimetable({ path, date: undefined, locations: 'stop', days: 1 }, faultless)
  const trains = new Map<string, TrainMessage[]>()
  for await (const batch of source.batches()) {
    for (const { message } of batch) {
      const its = message as TrainMessage
      const others = trains.get(its.train)
      if (others) others.push(its)
      else trains.set(its.train, [its])
    }
  }
  return [...trains.values()]
}

async function drive(
  locker: ObjectLocker,
  trains: readonly (readonly TrainMessage[])[],
  window: Window,
): Promise<Performance> {
  const waits = new WaitLog()
  let operations = 0
  let next = 0
  await pause(Math.max(0, window.startAt - now()))
  const driver = async (): Promise<void> => {
    while (now() < window.endAt) {
      for (const message of trains[next++ % trains.length]!) {
        const since = now()
        await handle(locker, message)
        waits.add(now() - since)
        if (now() > window.endAt) return
        operations++
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, driver))
  return { operations, waits: waits.values() }
}

async function handle(locker: ObjectLocker, { type, train, location, to }: TrainMessage): Promise<void> {
  const trainKey = `TRA_${train}`
  const known = JSON.parse((await locker.get(trainKey)) ?? 'null') as { location: string } | null
  const touched = [known?.location, location, to].filter(place => place !== undefined)
  const keys = [trainKey, ...new Set(touched.map(place => `LOC_${place}`))].sort()
  const locks: Held[] = []
  for (const key of keys) locks.push(await locker.lock(key))
  try {
    if (type === 'create') {
      await count(locker, location!, 'created')
      await locker.set(trainKey, JSON.stringify({ id: train, location }))
    } else if (known && type === 'move') {
      await count(locker, known.location, 'departed')
      await count(locker, to!, 'arrived')
      await locker.set(trainKey, JSON.stringify({ id: train, location: to }))
    } else if (known) {
      await count(locker, known.location, 'deleted')
      await locker.delete(trainKey)
    }
  } finally {
    for (const lock of locks) await lock.unlock()
  }
}

async function count(locker: ObjectLocker, place: string, what: string): Promise<void> {
  const key = `LOC_${place}`
  const counts = JSON.parse((await locker.get(key)) ?? '{}') as Record<string, number>
  await locker.set(key, JSON.stringify({ ...counts, [what]: (counts[what] ?? 0) + 1 }))
}
