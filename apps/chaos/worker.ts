import { open } from 'signalbox'
import { Counting } from './client/counting.js'
import { Link } from './client/link.js'
import { Storing } from './client/storing.js'
import { Transferring } from './client/transferring.js'
import type { Locks } from './locks/locks.js'
import { SignalboxLocks } from './locks/signalbox.js'
import { accountsOf, valuesOf, type ClientSettings } from './protocol.js'
import { watchStalls } from './stalls.js'
import { Random, shiftWallClock } from 'signalbox-conformance'

/** One client, until the harness sends `stop`. Five tasks count, one moves money, and one uses single values. */
const settings = JSON.parse(process.argv[2]!) as ClientSettings
const { who, url, peer, seed, run, lease } = settings
// Must run before a library takes a reference to the true clock.
shiftWallClock(0)
const random = new Random(seed)
const link = new Link()
watchStalls(lease, (from, until) => link.report({ say: 'stalled', from, until }))

const pause = () => random.below(20)

async function peersLocks(): Promise<Locks> {
  if (peer === 'redlock') return new (await import('./locks/redlock.js')).RedlockLocks(url, lease)
  return new (await import('./locks/redis-semaphore.js')).RedisSemaphoreLocks(url, lease)
}

function count(locks: Locks): Promise<unknown> {
  const counting = new Counting(who, run, locks, link, random)
  link.report({ say: 'ready' })
  return Promise.all([
    ...[1, 2].map(() => link.repeat(pause, () => counting.once())),
    ...[1, 2, 3].map(place => link.repeat(pause, () => counting.onceInTheCrowd(place))),
  ])
}

async function work(): Promise<void> {
  if (peer !== undefined) {
    await count(await peersLocks())
    return
  }
  const box = await open(url, { label: `chaos ${who}` })
  const counted = count(new SignalboxLocks(box, lease))
  if (box.guarantees.durability !== 'none') {
    const transferring = new Transferring(who, lease, box.store(accountsOf(run)), link)
    const storing = new Storing(who, box.store(valuesOf(run)), link, random)
    await Promise.all([
      link.repeat(pause, () => transferring.once(random)),
      link.repeat(pause, () => storing.once()),
    ])
  }
  await counted
  await box.close()
}

work().then(
  () => process.exit(0),
  (error: unknown) => {
    const message = error instanceof Error ? error.message : String(error)
    process.send!({ say: 'failed', message }, () => process.exit(1))
  },
)
