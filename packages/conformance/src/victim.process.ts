/**
 * Uses a box in each way that the engine has, with keys of its own. Releases nothing until it is killed;
 * on SIGTERM it closes its boxes.
 */
import { randomUUID } from 'node:crypto'
import type { Opener } from './fixture.js'
import { queued } from './time.js'

/** The work of a victim. Its argument has this as JSON. */
export interface VictimWork {
  /** Number of mutexes that it holds. */
  readonly mutexes: number
  /** Number of locks of each other kind, permits in use and watches. */
  readonly others: number
  /** Milliseconds. */
  readonly lease: number
  readonly keepsValues: boolean
  readonly hasLimits: boolean
}

const [opener, url, argument] = process.argv.slice(2)
const { open } = (await import(opener!)) as Opener
const { mutexes, others, lease, keepsValues, hasLimits } = JSON.parse(argument!) as VictimWork
const options = { lease }
const [holder, waiter] = await Promise.all([open(url!), open(url!)])
// Each victim has its own keys, so none removes the records of an earlier one.
const name = randomUUID()

process.once('SIGTERM', () => {
  void Promise.all([holder.close(), waiter.close()]).then(() => process.exit(0))
})

/** Does something for each of a number of keys, a few at a time, as all at once would take too long on a slow engine. */
async function each(count: number, kind: string, task: (key: string) => Promise<unknown>): Promise<void> {
  const keys = Array.from({ length: count }, (_, index) => `${name} ${kind} ${index}`)
  const work = async (): Promise<void> => {
    for (let key = keys.pop(); key !== undefined; key = keys.pop()) await task(key)
  }
  await Promise.all(Array.from({ length: 10 }, work))
}

async function endless(changes: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of changes);
}

/** Lets the other box wait for a key that this one holds. On a busy machine it may get the key after the lease. */
async function waitFor(key: string): Promise<void> {
  const asked = waiter
    .mutex(key, `${key} too`)
    .acquire(options)
    .catch(() => undefined)
  await Promise.race([asked, queued(holder, key, 1)])
}

await each(mutexes, 'mutex', key => holder.mutex(key).acquire(options))
await each(others, 'shared', key => holder.lock({ key, mode: 'shared' }).acquire(options))
await each(others, 'several', key => holder.mutex(`${key} a`, `${key} b`, `${key} c`).acquire(options))
await each(others, 'permit', key => holder.semaphore(key, { max: 3 }).acquire(options))
await each(others, 'waited', async key => {
  await holder.mutex(key).acquire(options)
  await waitFor(key)
})
if (hasLimits && others > 0) {
  const limiter = holder.limiter(name, { limit: 1000, per: 1000, concurrency: others, lease })
  await each(others, 'limiter', () => limiter.acquire())
}
if (keepsValues && others > 0) {
  await holder.election('leader').campaign(options)
  waiter
    .election('leader')
    .campaign(options)
    .catch(() => undefined)
  await each(others, 'watch', key => {
    endless(waiter.store('s').watch(key)).catch(() => undefined)
    return Promise.resolve()
  })
  // Values, IDs and the state of a limiter belong to no process, so one of each is enough.
  await holder
    .store('s')
    .transaction(['value'], transaction => transaction.put('value', 1), { id: name, retention: lease })
}
console.log('holding')
// Keeps the process alive; not forever, in case its parent does not kill it.
setTimeout(() => undefined, 120_000)
