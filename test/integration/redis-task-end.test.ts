import { expect, test } from 'vitest'
import type { Grant, LostError } from '../../src/index.js'
import { SignalboxError } from '../../src/index.js'
import { pause, until } from '../../packages/conformance/src/time.js'
import { RedisPlace, through } from '../support/redis/place.js'
import type { Proxy } from '../../apps/chaos/servers/proxy.js'
import type { RedisServer } from '../support/servers/redis.js'

/** A way to lose the server while tasks run, and to restore it. */
interface Outage {
  readonly name: string
  begin(server: RedisServer, network: Proxy): unknown
  end(server: RedisServer, network: Proxy): unknown
}

const OUTAGES: readonly Outage[] = [
  { name: 'stands still', begin: server => server.pause(), end: server => server.resume() },
  { name: 'was killed', begin: server => server.kill(), end: server => server.start() },
  {
    name: 'says nothing any more',
    begin: (_, network) => (network.replies = 'lose'),
    end: (_, network) => {
      network.cut()
      network.replies = 'pass'
    },
  },
  {
    name: 'is cut off',
    begin(_, network) {
      network.target = undefined
      network.cut()
    },
    end: (server, network) => (network.target = server.port),
  },
]

const KEYS = 3
const PAYMENTS = 9
/** Lease of the tasks, in milliseconds. */
const LEASE = 1500

test.concurrent.each(OUTAGES)('each payment is made once although the server $name', async outage => {
  await using place = await RedisPlace.start()
  const network = await place.network()
  const box = await place.box(through(network))
  const committed: number[] = []
  let begun = 0
  let over = false
  /**
   * Charges a payment. The first payment of each key runs when the outage begins: one of them ends immediately, one
   * after the loss of its grant, and one after the outage.
   */
  const charge = async (payment: number, grant: Grant): Promise<string> => {
    if (payment < KEYS) {
      begun++
      await until('the outage has begun', () => begun > KEYS)
    }
    committed.push(payment)
    if (payment === 1) await until('the grant is lost', () => grant.signal.aborted)
    if (payment === 2) await until('the outage is over', () => over)
    return `receipt ${payment}`
  }
  /** Pays with retries that depend only on the properties of errors. */
  const pay = async (payment: number): Promise<string> => {
    const key = `account ${payment % KEYS}`
    for (;;) {
      try {
        return await box.mutex(key).run(grant => charge(payment, grant), { lease: LEASE })
      } catch (error) {
        expect(error).toBeInstanceOf(SignalboxError)
        if ((error as SignalboxError).taskBegan === false) {
          await pause(50)
          continue
        }
        expect(error).toMatchObject({ code: 'LOST', taskEnded: true })
        return (error as LostError).result as string
      }
    }
  }
  const payments = Array.from({ length: PAYMENTS }, (_, payment) => pay(payment))
  await until('one task of each key runs', () => begun === KEYS)
  await outage.begin(place.server, network)
  begun++
  // These grants were held when their tasks ended, so a later loss is not reported.
  expect(await Promise.all([payments[0], payments[1]])).toEqual(['receipt 0', 'receipt 1'])
  await outage.end(place.server, network)
  over = true
  expect(await Promise.all(payments)).toEqual(payments.map((_, payment) => `receipt ${payment}`))
  expect(committed.sort()).toEqual(payments.map((_, payment) => payment))
})
