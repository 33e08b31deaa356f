import {
  type Box,
  type GrantedEvent,
  IndeterminateError,
  type LockEvent,
  type LockRefusedEvent,
  type LostEvent,
  type RefusedEvent,
  type ReleasedEvent,
  type ReleaseFailedEvent,
  SignalboxError,
  type Transaction,
  type TransactionEvent,
  UnavailableError,
} from 'signalbox'
import { testOn, type Boxes } from './boxes.js'
import { describe } from './checks.js'
import { assert } from './assert.js'
import { hasLimits, keepsValues, type EngineFixture } from './fixture.js'
import type { FaultInjectingEngine } from './fault-injecting-engine.js'
import { Random } from './random.js'
import { pause } from './time.js'

const CALLS = 40
/** The time within which calls begin, and their maximum wait, in milliseconds. */
const TIME = 200

type GrantEnd = ReleasedEvent | ReleaseFailedEvent | LostEvent

/** The channels for the end of a grant. */
const ENDS = ['lock:released', 'lock:release-failed', 'lock:lost'] as const

/** Makes a call of a box that random numbers choose. */
type Call = (box: Box, random: Random) => Promise<unknown>

const askForLock: Call = async (box, random) => {
  const mutex = box.mutex(random.below(2) === 0 ? 'a' : 'b')
  if (random.below(4) === 0) return (await mutex.tryAcquire())?.[Symbol.asyncDispose]()
  return mutex.run(() => pause(random.below(10)), { ...waitOf(random), lease: 20 + random.below(500) })
}

const askForPermit: Call = (box, random) => {
  const concurrency = random.below(2) === 0 ? { concurrency: 2 } : {}
  const limiter = box.limiter(concurrency.concurrency ? 'few' : 'api', { limit: 5, per: 100, ...concurrency })
  // A call may ask for more than the limit, and is refused.
  const n = 1 + random.below(6)
  return random.below(4) === 0
    ? limiter.tryAcquire(n).then(permit => permit?.release())
    : limiter.run(() => pause(random.below(10)), n, waitOf(random))
}

/** Holds a lock, and sometimes loses it: its lease ends, or an operator takes it away. */
const holdLock: Call = async (box, random) => {
  const key = random.below(2) === 0 ? 'a' : 'b'
  const renew = random.below(3) > 0
  const task = async ({ token }: { token: bigint }): Promise<void> => {
    await pause(random.below(40))
    if (random.below(8) === 0) await box.forceRelease(key, token)
  }
  return box.mutex(key).run(task, { ...waitOf(random), lease: 20 + random.below(500), renew })
}

const transact: Call = (box, random) => {
  const group = random.below(2) === 0 ? {} : { group: { maxSize: 4, maxTime: 10 } }
  const task = async (transaction: Transaction): Promise<void> => {
    await pause(random.below(10))
    transaction.put('a', random.below(10))
  }
  return box.store('s', group).transaction(['a'], task, waitOf(random))
}

/** Chooses the wait of a call: up to a time or a signal, none, or without a limit. */
function waitOf(random: Random): { wait?: number; signal?: AbortSignal } {
  switch (random.below(4)) {
    case 0:
      return { wait: random.below(TIME) }
    case 1:
      return { signal: AbortSignal.timeout(random.below(TIME)) }
    case 2:
      return { wait: 0 }
    default:
      return {}
  }
}

/** Names the grant that an event is about. */
function grantOf({ keys, token }: GrantedEvent | GrantEnd): string {
  return `${token} ${keys.join()}`
}

/** Each request and each grant is published with exactly one end. */
export function ends(fixture: EngineFixture): void {
  describe('diagnostics channels publish one end', () => {
    const test = testOn(fixture)

    /** Makes random calls while the engine fails now and then and another box holds the keys. Then closes the box. */
    async function disturb(boxes: Boxes, box: Box, engine: FaultInjectingEngine, call: Call): Promise<void> {
      const random = new Random(CALLS)
      const rival = await boxes.open()
      const held = await rival.mutex('a', 's/a').acquire()
      engine.intercept = (_, execute) => failNowAndThen(random, execute)
      engine.interceptReserve = (_, execute) => failNowAndThen(random, execute)
      const calls = Array.from({ length: CALLS }, async () => {
        await pause(random.below(TIME))
        await call(box, random)
      })
      const settled = Promise.allSettled(calls)
      await pause(TIME / 2)
      await held.release()
      await pause(TIME / 4)
      await box.close()
      await settled
      await call(box, random).catch(() => undefined)
    }

    test('each lock request ends once, and the event names the request', async boxes => {
      const [box, engine] = await boxes.withFaults()
      const requested = boxes.events<LockEvent>('lock:requested', box)
      const granted = boxes.events<GrantedEvent>('lock:granted', box)
      const refused = boxes.events<LockRefusedEvent>('lock:refused', box)
      await box.mutex('a').run(() => undefined)
      await disturb(boxes, box, engine, askForLock)
      assert.hasLength(requested, CALLS + 2)
      const ended = [...granted, ...refused].map(({ request }) => request)
      assert.hasLength(ended, requested.length)
      assert.deepEqual(
        requested.filter(request => !ended.includes(request)),
        [],
      )
      assert.above(granted.length, 0)
      assert.includes(
        refused.map(({ error }) => codeOf(error)),
        'CLOSED',
      )
    })

    for (const [what, call] of [
      ['a grant', holdLock],
      ...(keepsValues(fixture) ? ([['the locks of a transaction', transact]] as const) : []),
    ] as const) {
      test(`${what} ends once, and the event names its token`, async boxes => {
        const [box, engine] = await boxes.withFaults()
        const granted = boxes.events<GrantedEvent>('lock:granted', box)
        const ends = ENDS.map(end => boxes.events<GrantEnd>(end, box))
        await box.mutex('a').run(() => undefined)
        await disturb(boxes, box, engine, call)
        // Grants of different keys may have one token.
        const ended = ends.flat().map(grantOf)
        assert.equal(new Set(ended).size, ended.length)
        assert.hasLength(ended, granted.length)
        assert.deepEqual(
          granted.filter(event => !ended.includes(grantOf(event))),
          [],
        )
        for (const { held } of ends.flat()) assert.atLeast(held, 0)
      })
    }

    test.runIf(hasLimits(fixture))('each request for a permit ends once', async boxes => {
      const [box, engine] = await boxes.withFaults()
      const permitted = boxes.events('limit:permitted', box)
      const refused = boxes.events<RefusedEvent>('limit:refused', box)
      await box.limiter('first', { limit: 1, per: 100 }).acquire()
      await disturb(boxes, box, engine, askForPermit)
      // Each random call may have ended before the box was closed, or may ask for more than the limit.
      await box
        .limiter('api', { limit: 5, per: 100 })
        .acquire()
        .catch(() => undefined)
      assert.hasLength([...permitted, ...refused], CALLS + 3)
      assert.above(permitted.length, 0)
      assert.includes(
        refused.map(({ error }) => codeOf(error)),
        'CLOSED',
      )
    })

    test.runIf(keepsValues(fixture))('each transaction ends once', async boxes => {
      const [box, engine] = await boxes.withFaults()
      const ended = boxes.events<TransactionEvent>('store:transaction', box)
      await box.store('s').transaction(['a'], () => undefined)
      await disturb(boxes, box, engine, transact)
      assert.hasLength(ended, CALLS + 2)
      const failed = ended.filter(({ outcome }) => outcome === 'failed')
      assert.below(failed.length, ended.length)
      assert.includes(
        failed.map(({ error }) => codeOf(error)),
        'CLOSED',
      )
    })
  })
}

/** Executes an operation, or fails now and then like an unreachable engine. */
function failNowAndThen<T>(random: Random, execute: () => Promise<T>): Promise<T> {
  switch (random.below(10)) {
    case 0:
      return Promise.reject(new UnavailableError('the line is cut'))
    case 1:
      return execute().then(() => Promise.reject(new IndeterminateError('the answer was lost')))
    default:
      return execute()
  }
}

function codeOf(error: unknown): string {
  return error instanceof SignalboxError ? error.code : String(error)
}
