import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { Mutex } from 'redis-semaphore'
import { openTimetable } from '../../apps/trains/gtfs/gtfs-source.js'
import type { Message } from '../../apps/trains/messages/message.js'
import { now } from '../clock.js'
import { toldAddress } from '../lockers/address-file.js'
import { redisSupport } from '../lockers/redis-server.js'
import { packageFile } from '../package.js'
import { forked } from '../processes/forked.js'
import type { Performance, Window } from '../processes/performer.js'
import { WaitLog } from '../wait-log.js'

/** Trains that one process drives at the same time. */
const AT_ONCE = 16
const LOCK = { lockTimeout: 30_000, acquireTimeout: 60_000 }

/** A message of any of the three types. */
interface TrainMessage extends Message {
  readonly train: string
  readonly location?: string
  readonly to?: string
}

/**
 * The train tracker as one writes it without a library for it: one message after the other for each train, its locks
 * taken one by one in the order of their keys with redis-semaphore, each object read and written by itself.
 */
export const straightPort = forked(
  'a straight port with redis-semaphore',
  async ({ folder, process, processes }) => {
    const client = new Redis(await toldAddress(folder))
    const trains = (await trainsOfDay()).filter((_, index) => index % processes === process)
    return {
      perform: window => drive(client, trains, window),
      stop: async () => client.disconnect(),
    }
  },
  { processes: 4, support: redisSupport },
)

/** The messages of one day, those of each train together. */
async function trainsOfDay(): Promise<TrainMessage[][]> {
  const path = packageFile('dist/apps/trains/data/caltrain-gtfs')
  const source = await openTimetable({ path, date: undefined, locations: 'stop', days: 1 }, () => undefined)
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
  client: Redis,
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
        await handle(client, message)
        waits.add(now() - since)
        if (now() > window.endAt) return
        operations++
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, driver))
  return { operations, waits: waits.values() }
}

async function handle(client: Redis, { type, train, location, to }: TrainMessage): Promise<void> {
  const trainKey = `TRA_${train}`
  const known = JSON.parse((await client.get(trainKey)) ?? 'null') as { location: string } | null
  const touched = [known?.location, location, to].filter(place => place !== undefined)
  const keys = [trainKey, ...new Set(touched.map(place => `LOC_${place}`))].sort()
  const locks: Mutex[] = []
  for (const key of keys) {
    const lock = new Mutex(client, key, LOCK)
    await lock.acquire()
    locks.push(lock)
  }
  try {
    if (type === 'create') {
      await count(client, location!, 'created')
      await client.set(trainKey, JSON.stringify({ id: train, location }))
    } else if (known && type === 'move') {
      await count(client, known.location, 'departed')
      await count(client, to!, 'arrived')
      await client.set(trainKey, JSON.stringify({ id: train, location: to }))
    } else if (known) {
      await count(client, known.location, 'deleted')
      await client.del(trainKey)
    }
  } finally {
    for (const lock of locks) await lock.release()
  }
}

async function count(client: Redis, place: string, what: string): Promise<void> {
  const key = `LOC_${place}`
  const counts = JSON.parse((await client.get(key)) ?? '{}') as Record<string, number>
  await client.set(key, JSON.stringify({ ...counts, [what]: (counts[what] ?? 0) + 1 }))
}
