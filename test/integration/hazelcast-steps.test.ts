import * as hazelcast from 'hazelcast-client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Box } from '../../src/box.js'
import { systemClock } from '../../src/clock.js'
import { HazelcastEngine } from '../../src/engines/hazelcast/hazelcast-engine.js'
import { parseHazelcastUrl } from '../../src/engines/hazelcast/hazelcast-url.js'
import { open } from '../../src/open.js'
import { pause, until } from '../../src/conformance/time.js'
import { startHazelcast, TEST_CLUSTER, type HazelcastServer } from '../servers/hazelcast.js'

/** More remote calls than a transaction of two keys and its carrying over take. */
const STEPS = 20

type AnyMap = Record<string, (...args: unknown[]) => Promise<unknown>>

/** Where a client is cut off: that call is the last that goes out, and its answer comes or does not. */
interface Cut {
  /** How many calls have gone out since the cut was armed. */
  calls: number
  isArmed: boolean
  /** Whether anything was kept from going out or coming back. */
  isCut: boolean
  readonly after: number
  readonly isAnswered: boolean
}

/** The client's package, with clients that are cut off as told. */
function cutOff(cut: Cut) {
  const call = (send: () => Promise<unknown>): Promise<unknown> => {
    if (!cut.isArmed) return send()
    const number = ++cut.calls
    if (number < cut.after) return send()
    if (number === cut.after) {
      const answer = send()
      if (cut.isAnswered) return answer
      answer.catch(() => undefined)
    }
    cut.isCut = true
    return new Promise(() => undefined)
  }
  const remote = /^(get|getAll|set|delete|replaceIfSame|putIfAbsent|tryLock|unlock|isLocked)$/
  const watched = (map: AnyMap): AnyMap =>
    new Proxy(map, {
      get(target, name) {
        const method = target[name as string]!
        if (typeof name !== 'string' || !remote.test(name)) return method
        return (...args: unknown[]) => call(() => method.apply(target, args))
      },
    })
  const Client = {
    async newHazelcastClient(config: hazelcast.ClientConfig) {
      const client = await hazelcast.Client.newHazelcastClient(config)
      return new Proxy(client, {
        get(target, name) {
          if (name === 'getMap') return async (map: string) => watched((await target.getMap(map)) as never)
          const member: unknown = Reflect.get(target, name)
          return typeof member === 'function' ? (member.bind(target) as unknown) : member
        },
      })
    },
  }
  return { ...hazelcast, Client: Client as unknown as typeof hazelcast.Client }
}

let server: HazelcastServer

beforeAll(async () => {
  server = await startHazelcast()
})
afterAll(() => server.kill())

/** Moves something from one key to the other; the id makes it happen once, however often it is tried. */
function move(box: Box) {
  return box.store('s').transaction(
    ['from', 'to'],
    transaction => {
      transaction.put('from', transaction.get<number>('from')! - 1)
      transaction.put('to', transaction.get<number>('to')! + 1)
    },
    { id: 'the move', lease: 1000 },
  )
}

/** Cuts a client off at one call of a transaction, and lets another one go on. @returns whether it got so far. */
async function cutAt(after: number, isAnswered: boolean): Promise<boolean> {
  const url = `hazelcast://${server.address}/${TEST_CLUSTER}?map=steps-${after}-${isAnswered}`
  const cut: Cut = { calls: 0, isArmed: false, isCut: false, after, isAnswered }
  await using other = await open(url)
  await other.store('s').put('from', 10)
  await other.store('s').put('to', 0)
  const box = await Box.join(
    new HazelcastEngine(parseHazelcastUrl(url), cutOff(cut), systemClock),
    systemClock,
  )
  cut.isArmed = true
  let isOver = false
  const moving = move(box).then(
    () => (isOver = true),
    () => (isOver = true),
  )
  // Then long enough for all that still goes out.
  await until('it is cut off or done', () => cut.isCut || isOver)
  await Promise.race([moving, pause(500)])
  const wasCut = cut.isCut
  const store = other.store('s')
  const sum = await store.transaction(
    ['from', 'to'],
    transaction => transaction.get<number>('from')! + transaction.get<number>('to')!,
  )
  expect(sum).toMatchObject({ result: 10 })
  await move(other)
  expect([(await store.get('from'))!.value, (await store.get('to'))!.value]).toEqual([9, 1])
  // Nothing that comes late changes anything.
  await box.close()
  expect([(await store.get('from'))!.value, (await store.get('to'))!.value]).toEqual([9, 1])
  return wasCut
}

test(
  'a client that is cut off at any remote call of a transaction leaves all of it or nothing',
  { timeout: 120_000 },
  async () => {
    const steps = Array.from({ length: STEPS }, (_, step) => step)
    for (const isAnswered of [true, false]) {
      const went = await Promise.all(steps.map(step => cutAt(step, isAnswered)))
      // The last ones were not cut off any more, so all that it takes was among the rest.
      expect(went.indexOf(false)).toBeGreaterThan(6)
    }
  },
)
