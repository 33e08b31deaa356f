import { afterAll, beforeAll, describe, test, type TestContext } from 'vitest'
import { freePort } from '../../apps/chaos/servers/free-port.js'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import type { Box } from '../../src/box.js'
import { nothingHeld, pause, queued, soFar, until } from '../../packages/conformance/src/time.js'
import { SignalboxError } from '../../src/base/errors.js'
import { open } from '../../src/open.js'
import { eventually } from '../support/hazelcast/eventually.js'
import { startHazelcast, TEST_CLUSTER, type HazelcastServer } from '../support/servers/hazelcast.js'

/** Time for which a client is cut off, in milliseconds. */
const CUT = 15_000
/** Maximum time of operations during a cut, and of recovery after it, in milliseconds. Far more than they need. */
const BOUND = 25_000
/** A lease that ends while the client is cut off, and one that outlives the cut, in milliseconds. */
const SHORT = 4000
const LONG = 40_000
/** Maximum time of each step of another client during a cut, in milliseconds. */
const SLOWEST = 5000

/** A way to cut a client off, and to restore its connection. */
interface Way {
  cut(proxy: Proxy): void
  restore(proxy: Proxy): void
  /** Whether the client survives the cut, and with it the locks that it has on the member. */
  readonly isSurvived: boolean
}

const WAYS: Record<string, Way> = {
  'refused its connections': {
    cut(proxy) {
      proxy.target = undefined
      proxy.cut()
    },
    restore(proxy) {
      proxy.replies = 'pass'
      proxy.target = server.port
    },
    isSurvived: false,
  },
  'told nothing any more': {
    cut(proxy) {
      proxy.requests = 'hold'
      proxy.replies = 'hold'
    },
    restore(proxy) {
      proxy.requests = 'pass'
      proxy.replies = 'pass'
    },
    isSurvived: true,
  },
}

let server: HazelcastServer

beforeAll(async () => {
  // No server listens at the address that the member names to clients, so a client that is cut off cannot bypass the
  // proxy.
  server = await startHazelcast({ publicPort: await freePort() })
})
afterAll(() => server.kill())

async function boxAt(port: number, map: string, { onTestFinished }: TestContext): Promise<Box> {
  const network = { clusterMembers: [`127.0.0.1:${port}`], smartRouting: false }
  const box = await open({ map, hazelcast: { clusterName: TEST_CLUSTER, network } })
  onTestFinished(() => box.close())
  return box
}

/** The outcome of a call, with the clock time of its end. */
interface End {
  /** The code of its error; undefined for success. */
  readonly code: string | undefined
  readonly at: number
}

async function ending(task: Promise<unknown>): Promise<End> {
  try {
    await task
    return { code: undefined, at: performance.now() }
  } catch (error) {
    // Callers should not get any other error.
    if (!(error instanceof SignalboxError)) throw error
    return { code: error.code, at: performance.now() }
  }
}

/**
 * Adds one to the value of a key, once for each key regardless of the number of attempts.
 * @param begun called before the transaction writes
 */
function add(box: Box, key: string, lease: number, begun?: () => Promise<void>): Promise<unknown> {
  return box.store('s').transaction(
    [key],
    async transaction => {
      const before = transaction.get<number>(key) ?? 0
      await begun?.()
      transaction.put(key, before + 1)
    },
    { id: key, lease, wait: CUT },
  )
}

/**
 * Runs another client until it is asked to stop.
 * @returns the number of its steps, and the duration of the slowest one in milliseconds
 */
async function goOn(box: Box, over: AbortSignal): Promise<{ steps: number; slowest: number }> {
  let steps = 0
  let slowest = 0
  while (!over.aborted) {
    const since = performance.now()
    await box.mutex('others').run(() => undefined, { wait: BOUND })
    await box
      .store('s')
      .transaction(['others'], one => one.put('others', (one.get<number>('others') ?? 0) + 1), {
        wait: BOUND,
      })
    steps++
    slowest = Math.max(slowest, performance.now() - since)
    await pause(20)
  }
  return { steps, slowest }
}

const CASES = Object.entries(WAYS).flatMap(([name, way]) =>
  [SHORT, LONG].map(lease => ({ name, way, lease })),
)

describe.concurrent('a client that alone is cut off for 15 s', () => {
  test.for(CASES)('$name, with leases of $lease ms', async ({ name, way, lease }, context) => {
    const { expect, onTestFinished } = context
    const proxy = await Proxy.start(server.port)
    onTestFinished(() => proxy[Symbol.asyncDispose]())
    const map = `${name} ${lease}`
    const box = await boxAt(proxy.port, map, context)
    const other = await boxAt(server.port, map, context)

    // The box holds one lock and waits for another. It also commits two changes: one that gets no reply, and one that
    // is not sent.
    const held = await box.mutex('held').acquire({ lease })
    const inTheWay = await other.mutex('wanted').acquire()
    const waiting = box.mutex('wanted').acquire({ lease, wait: 2 * BOUND })
    waiting.catch(() => undefined)
    await queued(other, 'wanted', 1)
    let cutOff = (): void => undefined
    const isCutOff = new Promise<void>(resolve => (cutOff = resolve))
    let begun = 0
    const unsent = ending(
      add(box, 'unsent', lease, () => {
        begun++
        return isCutOff
      }),
    )
    await until('it has begun', () => begun === 1)
    const unanswered = ending(
      add(box, 'unanswered', lease, async () => {
        proxy.replies = 'hold'
      }),
    )
    await until('it is committed', async () => (await other.store('s').get('unanswered')) !== undefined)
    way.cut(proxy)
    const since = performance.now()
    cutOff()
    const over = new AbortController()
    const others = goOn(other, over.signal)
    others.catch(() => undefined)
    const asked = [
      ending(box.mutex('asked').run(() => undefined, { lease, wait: BOUND })),
      ending(box.mutex('tried').tryAcquire({ lease })),
      ending(box.store('s').get('others')),
      ending(box.store('s').put('put', 1)),
    ]

    await pause(CUT / 3)
    await inTheWay.release()
    const isLong = lease === LONG
    // A waiter that does not learn of its turn does not block the others.
    await other.mutex('wanted').run(() => undefined, { wait: CUT / 3 })
    if (isLong) expect(await other.mutex('held').tryAcquire()).toBeUndefined()
    else {
      const next = await other.mutex('held').acquire({ wait: CUT / 3 })
      expect(held.expiresIn() > 0).toBe(false)
      expect(next.token).toBeGreaterThan(held.token)
      await next.release()
    }
    await pause(since + CUT - performance.now())
    expect(held.expiresIn() > 0).toBe(isLong)
    if (isLong) {
      expect(await other.mutex('held').tryAcquire()).toBeUndefined()
      expect(await soFar(waiting)).toBe('pending')
    }
    way.restore(proxy)
    const restored = performance.now()

    for (const end of await Promise.all([unsent, unanswered, ...asked])) {
      expect([undefined, 'UNAVAILABLE', 'INDETERMINATE', 'LOST', 'TIMED_OUT']).toContain(end.code)
      expect(end.at - since).toBeLessThan(BOUND)
    }
    // The box recovers by itself, whether or not its client has survived.
    await eventually(() => box.mutex('after').run(() => undefined), BOUND)
    const waited = await ending(waiting)
    expect(isLong ? [undefined] : ['UNAVAILABLE', 'INDETERMINATE']).toContain(waited.code)
    expect(waited.at - since).toBeLessThan(isLong ? CUT + BOUND : BOUND)
    if (isLong) await (await waiting).release()
    if (isLong && way.isSurvived) {
      await until('it is renewed', () => held.expiresIn() > LONG / 2)
      await held.release()
    } else {
      // The member has removed the locks of the client.
      await until('it is notified', () => held.signal.aborted)
      await expect(held.release()).rejects.toMatchObject({ code: 'LOST' })
    }
    for (const key of ['unsent', 'unanswered']) {
      await eventually(() => add(box, key, lease), BOUND)
      expect((await box.store('s').get(key))!.value).toBe(1)
      expect((await other.store('s').get(key))!.value).toBe(1)
    }
    for (const key of ['held', 'wanted', 'asked', 'tried', 's/unsent', 's/unanswered', 's/put'])
      await other.mutex(key).run(() => undefined, { wait: BOUND })
    expect(performance.now() - restored).toBeLessThan(2 * BOUND)
    over.abort()
    const { steps, slowest } = await others
    expect(slowest).toBeLessThan(SLOWEST)
    expect((await box.store('s').get('others'))!.value).toBe(steps)
    expect(steps).toBeGreaterThan(CUT / 1000)
    await nothingHeld(other)
  })
})
