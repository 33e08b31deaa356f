import * as hazelcast from 'hazelcast-client'
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { Box } from '../../src/box.js'
import { systemClock } from '../../src/base/clock.js'
import { HazelcastEngine } from '../../packages/hazelcast/src/hazelcast-engine.js'
import { parseHazelcastUrl } from '../../packages/hazelcast/src/hazelcast-url.js'
import { open } from '../../src/open.js'
import { pause, until } from '../../packages/conformance/src/time.js'
import { foreignClient } from '../support/hazelcast/foreign-map.js'
import { intercepted, type MapCall } from '../support/hazelcast/intercepted.js'
import { startHazelcast, TEST_CLUSTER } from '../support/servers/hazelcast.js'

/** Greater than the number of remote calls in the transaction and its write-back, as long as no lease is renewed. */
const STEPS = 64
/** Long enough that a transaction on a busy machine ends before its lease is renewed, in milliseconds. */
const LEASE = 3000
/** Maximum time until another box has completed the transaction, in milliseconds. Far more than needed. */
const BOUND = 20_000

/** Cuts off a client: `after` is the last call that is sent, and `isAnswered` says whether its reply arrives. */
interface Cut {
  /** Number of calls since the cut was armed. */
  calls: number
  isArmed: boolean
  /** Whether any call or reply was withheld. */
  isCut: boolean
  readonly after: number
  readonly isAnswered: boolean
}

/** Returns the client's package. The test cuts off the clients that it creates. */
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
  return intercepted(({ send }) => call(send))
}

const server = await startHazelcast()
afterAll(() => server.kill())

/** Values of the keys before and after the move; undefined if there is none. */
const BEFORE = { from: 10, to: 0, created: undefined, deleted: 1, read: 5 }
const AFTER = { from: 9, to: 1, created: 5, deleted: undefined, read: 5 }
type State = Record<keyof typeof BEFORE, number | undefined>
const KEYS = Object.keys(BEFORE) as (keyof State)[]

/** Moves a value from one key to another, and makes other changes. The ID ensures that it is applied once. */
function move(box: Box) {
  return box.store('s').transaction(
    KEYS,
    transaction => {
      transaction.put('from', transaction.get<number>('from')! - 1)
      transaction.put('to', transaction.get<number>('to')! + 1)
      transaction.put('created', transaction.get<number>('read')!)
      transaction.delete('deleted')
    },
    { id: 'the move', lease: LEASE },
  )
}

/** Reads the values with a new box. */
async function readCold(url: string): Promise<State> {
  await using box = await open(url)
  const found = await Promise.all(KEYS.map(key => box.store('s').get<number>(key)))
  return Object.fromEntries(KEYS.map((key, index) => [key, found[index]?.value])) as State
}

/** Reads the map of values like another program. */
async function readRaw(values: hazelcast.IMap<string, hazelcast.HazelcastJsonValue>): Promise<State> {
  const found = new Map(await values.getAll(KEYS.map(key => `s/${key}`)))
  const valueOf = (key: string) => (found.get(`s/${key}`) as { value?: number } | undefined)?.value
  return Object.fromEntries(KEYS.map(key => [key, valueOf(key)])) as State
}

/**
 * Cuts off a client at one call of a transaction, and lets another box continue. @returns whether a call was cut off
 */
async function cutAt(client: hazelcast.Client, after: number, isAnswered: boolean): Promise<boolean> {
  const map = `steps-${after}-${isAnswered}`
  const url = `hazelcast://${server.address}/${TEST_CLUSTER}?map=${map}`
  const values = await client.getMap<string, hazelcast.HazelcastJsonValue>(`${map}.values`)
  const cut: Cut = { calls: 0, isArmed: false, isCut: false, after, isAnswered }
  await using other = await open(url)
  const store = other.store('s')
  for (const key of KEYS) if (BEFORE[key] !== undefined) await store.put(key, BEFORE[key])
  const box = await Box.join(
    new HazelcastEngine(parseHazelcastUrl(url), cutOff(cut), systemClock),
    systemClock,
  )
  cut.isArmed = true
  let outcome: 'confirmed' | 'failed' | undefined
  const moving = move(box).then(
    () => (outcome = 'confirmed'),
    () => (outcome = 'failed'),
  )
  // Waits for the cut or the end, and then long enough for calls that are still sent.
  await until('it is cut off or done', () => cut.isCut || outcome !== undefined)
  await Promise.race([moving, pause(500)])
  const { isCut } = cut
  const isConfirmed = outcome === 'confirmed'
  // Either all changes are there or none. All are there if the transaction was confirmed.
  const left = await readCold(url)
  expect([AFTER, ...(isConfirmed ? [] : [BEFORE])]).toContainEqual(left)
  // The map reaches that state even if no later operation changes anything.
  await vi.waitFor(async () => expect(await readRaw(values)).toEqual(left), { timeout: BOUND, interval: 50 })
  await move(other)
  expect(await readCold(url)).toEqual(AFTER)
  // Late calls change nothing.
  await box.close()
  expect(await readCold(url)).toEqual(AFTER)
  await vi.waitFor(async () => expect(await readRaw(values)).toEqual(AFTER), { timeout: BOUND, interval: 50 })
  return isCut
}

test(
  'a client that is cut off at any remote call of a transaction leaves all of it or nothing',
  { timeout: 120_000 },
  async () => {
    const client = await foreignClient(server)
    const steps = Array.from({ length: STEPS }, (_, step) => step)
    for (const isAnswered of [true, false]) {
      const went = await Promise.all(steps.map(step => cutAt(client, step, isAnswered)))
      // The last calls were not cut off, so STEPS is large enough.
      expect(went.indexOf(false)).toBeGreaterThan(6)
    }
  },
)

/** Opens a box that makes all its remote calls through `call`. */
async function boxWith(map: string, call: (call: MapCall) => Promise<unknown>): Promise<Box> {
  const place = parseHazelcastUrl(`hazelcast://${server.address}/${TEST_CLUSTER}?map=${map}`)
  const box = await Box.join(new HazelcastEngine(place, intercepted(call), systemClock), systemClock)
  onTestFinished(() => box.close())
  return box
}

/** Holds back calls while it is shut. */
class Gate {
  isShut = false
  /** Number of calls that wait. */
  waiting = 0
  #open: () => void = () => undefined
  #opened = Promise.resolve()

  shut(): void {
    this.isShut = true
    this.#opened = new Promise(resolve => (this.#open = resolve))
  }

  open(): void {
    this.isShut = false
    this.#open()
  }

  async pass(): Promise<void> {
    if (!this.isShut) return
    this.waiting++
    await this.#opened
    this.waiting--
  }
}

describe('a box that writes its commit to another key late, after another box has done so and deleted the value', () => {
  /** Commits two keys, has the second one written and deleted by another box, and then lets the first box continue. */
  async function late(
    map: string,
    carry: (call: MapCall) => Promise<unknown>,
    goOn: () => void,
    meanwhile: (values: hazelcast.IMap<string, unknown>) => Promise<void> = () => Promise.resolve(),
  ): Promise<unknown> {
    const box = await boxWith(map, call =>
      call.map === `${map}.values` && call.method === 'replaceIfSame' && call.key === 's/other'
        ? carry(call)
        : call.send(),
    )
    const url = `hazelcast://${server.address}/${TEST_CLUSTER}?map=${map}`
    await using other = await open(url)
    const values = await (
      await foreignClient(server)
    ).getMap<string, { value?: unknown } | null>(`${map}.values`)
    const store = box.store('s')
    const committed = store.transaction(['home', 'other'], transaction => {
      transaction.put('home', 'late')
      transaction.put('other', 'late')
    })
    const valueOf = async () => (await values.get('s/other'))?.value
    await until('another box has it', async () => (await other.store('s').get('other'))?.value === 'late')
    expect(await valueOf()).toBe('late')
    await other.store('s').delete('other')
    await meanwhile(values)
    goOn()
    await committed
    await box.close()
    await using reader = await open(url)
    expect((await reader.store('s').get('home'))?.value).toBe('late')
    return await reader.store('s').get('other')
  }

  test('leaves it deleted if its call was being sent', async () => {
    const gate = new Gate()
    gate.shut()
    const carry = async ({ send }: MapCall) => {
      await gate.pass()
      return send()
    }
    expect(await late('parked', carry, () => gate.open())).toBeUndefined()
  })

  test('leaves it deleted if it was disconnected, even if nothing is left of the entry', async () => {
    let isCut = true
    const carry = async ({ send }: MapCall) => {
      if (isCut) throw new hazelcast.TargetDisconnectedError('refused by the test')
      return send()
    }
    const found = await late(
      'late',
      carry,
      () => (isCut = false),
      async values => {
        await values.delete('s/other')
      },
    )
    expect(found).toBeUndefined()
  })
})

test('a read for missed changes is retried until it succeeds', async () => {
  /** More attempts than the reports of a connection that was lost and replaced. */
  const refusals = 5
  let looks = -Infinity
  let client!: hazelcast.Client
  const place = parseHazelcastUrl(`hazelcast://${server.address}/${TEST_CLUSTER}?map=looked`)
  const clientPackage = intercepted(
    async ({ map, method, send }) => {
      if (map === 'looked.table' && method === 'putIfAbsent' && ++looks > 0 && looks <= refusals)
        throw new hazelcast.TargetDisconnectedError('refused by the test')
      return send()
    },
    started => (client = started),
  )
  await using _box = await Box.join(new HazelcastEngine(place, clientPackage, systemClock), systemClock)
  looks = 0
  const { connectionRegistry } = client as unknown as {
    connectionRegistry: { getConnections(): readonly { close(reason: string): void }[] }
  }
  for (const connection of connectionRegistry.getConnections()) connection.close('by the test')
  await until('it has succeeded', () => looks > refusals)
})
