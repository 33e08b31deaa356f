import { describe, expect, test } from 'vitest'
import { locks, queued, timed, until } from '../../packages/conformance/src/time.js'
import { codeOf } from '../support/redis/outcome.js'
import { RedisPlace, through } from '../support/redis/place.js'
import type { Proxy } from '../../apps/chaos/servers/proxy.js'

/**
 * Opens a box behind a network, and another box with a direct connection. Uses both, so that the server knows the
 * script.
 */
async function start() {
  const here = await RedisPlace.start()
  const network = await here.network()
  const box = await here.box(through(network))
  const other = await here.box()
  for (const each of [box, other]) await each.mutex('practice').run(() => undefined)
  return { here, network, box, other, [Symbol.asyncDispose]: () => here[Symbol.asyncDispose]() }
}

/** Cuts the connections and restores the network. */
function breakUp(network: Proxy): void {
  network.cut()
  network.replies = 'pass'
  network.requests = 'pass'
}

/** Far less than the leases that a caller would otherwise wait for, in milliseconds. */
const SOON = 15_000

describe.concurrent('an answer that is lost', () => {
  test('of a release does not keep the lock from waiters of the same box', async () => {
    await using started = await start()
    const { here, network, box, other } = started
    // The other box has a permit, so this box must release its permit on the server instead of passing it on.
    const both = { max: 2 }
    await other.semaphore('key', both).acquire()
    const permits = box.semaphore('key', both)
    let held = await permits.acquire({ lease: '60s' })
    let asked = permits.acquire({ lease: '60s' })
    await queued(other, 'key', 1)
    await held.release()
    // Wake-ups arrive from now on.
    held = await asked
    asked = permits.acquire({ lease: '60s' })
    await queued(other, 'key', 1)
    // Waits until the reply that the request is queued has arrived.
    await box.store('s').get('k')
    network.replies = 'lose'
    const released = codeOf(held.release())
    await until('it is done', async () => (await locks(other, 'key'))[0]?.holders.length !== 2)
    network.replies = 'pass'
    // Cuts only the connection for commands. The one for wake-ups stays.
    await here.server.command('CLIENT', 'KILL', 'TYPE', 'normal')
    expect(await released).toBe('INDETERMINATE')
    // Without a wake-up, the waiter would check again only forty seconds later.
    expect(await timed(async () => (await asked).release())).toBeLessThan(SOON)
  })

  test('because the release never arrived is asked for again, which leaves the key free as soon as the server is back', async () => {
    await using started = await start()
    const { network, box, other } = started
    const held = await box.mutex('key').acquire({ lease: '60s' })
    network.requests = 'hold'
    const released = codeOf(held.release())
    await until('it is under way', () => network.withheldRequests > 0)
    breakUp(network)
    expect(await released).toBeUndefined()
    const took = await timed(async () => (await other.mutex('key').acquire()).release())
    expect(took).toBeLessThan(SOON)
  })
})

describe.concurrent('the connection that wake-ups come on', () => {
  test('may be cut at the moment of the wake-up', async () => {
    await using started = await start()
    const { here, box, other } = started
    for (let round = 0; round < 12; round++) {
      const held = await other.mutex('key').acquire()
      const asked = box.mutex('key').acquire()
      await queued(other, 'key', 1)
      const cut = (): Promise<unknown> => here.server.command('CLIENT', 'KILL', 'TYPE', 'pubsub')
      // Cuts the connection before the wake-up is sent, or while it is on its way.
      const cutting = round % 2 === 0 ? cut() : undefined
      const took = await timed(async () => {
        await held.release()
        await Promise.all([cutting ?? cut(), asked])
      })
      // Without a wake-up, the waiter would check again only twenty seconds later.
      expect(took).toBeLessThan(SOON)
      await (await asked).release()
    }
  })
})
