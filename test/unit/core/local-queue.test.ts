import { describe, expect, test } from 'vitest'
import { Box } from '../../../src/box.js'
import { VirtualClock } from '../../../src/base/clock.js'
import type { Enqueue, LockRequest, RequestStatus } from '../../../src/engine/contract.js'
import { HEARTBEAT_INTERVAL } from '../../../src/engine/wait-times.js'
import {
  ClosedError,
  IndeterminateError,
  LostError,
  TimedOutError,
  UnavailableError,
} from '../../../src/base/errors.js'
import type { Grant } from '../../../src/core/grant.js'
import type { LockOptions } from '../../../src/core/lock-options.js'
import { ScriptedEngine, settle } from './scripted-engine.js'

const held = (id: string, number: number): RequestStatus => ({ state: 'held', id, number })
const queued = (id: string, checkInAfter = 10_000): RequestStatus => ({
  state: 'queued',
  id,
  place: 1,
  checkInAfter,
  sessionsAhead: [],
})

/** A promise whose outcome can be inspected. */
class Outcome<T> {
  value: T | undefined
  error: unknown
  settled = false

  constructor(promise: Promise<T>) {
    promise.then(
      value => {
        this.value = value
        this.settled = true
      },
      (error: unknown) => {
        this.error = error
        this.settled = true
      },
    )
  }
}

/** Answers the oldest enqueue. Returns its request. */
async function answerNext(
  engine: ScriptedEngine,
  status: (id: string) => RequestStatus,
): Promise<LockRequest> {
  const { operation, answer } = engine.take('enqueue')
  answer(status(operation.request.id))
  await settle()
  return operation.request
}
const queueNext = (engine: ScriptedEngine, checkInAfter?: number): Promise<LockRequest> =>
  answerNext(engine, id => queued(id, checkInAfter))
const grantNext = (engine: ScriptedEngine, number: number): Promise<LockRequest> =>
  answerNext(engine, id => held(id, number))

async function start() {
  const clock = new VirtualClock(1000)
  const engine = new ScriptedEngine()
  const box = await Box.join(engine, clock)
  const acquire = (options?: LockOptions) => new Outcome<Grant>(box.mutex('key').acquire(options))
  /** Makes a caller acquire the key, and answers with a grant of this number. */
  const holder = async (number: number, options?: LockOptions): Promise<Grant> => {
    const asked = acquire(options)
    await grantNext(engine, number)
    return asked.value!
  }
  return { clock, engine, box, acquire, holder }
}

describe('requests to the engine', () => {
  test('callers with equal claims share one request', async () => {
    const { engine, box, acquire } = await start()
    const first = acquire()
    for (let index = 0; index < 1000; index++) acquire()
    const other = new Outcome(box.mutex('key', 'more').acquire())
    expect(engine.words).toBe('enqueue enqueue')
    await queueNext(engine)
    expect(first.settled).toBe(false)
    expect(other.settled).toBe(false)
    expect(engine.words).toBe('enqueue enqueue')
    await box.close()
  })

  test('each request carries the longest remaining wait of the queue', async () => {
    const { clock, engine, acquire } = await start()
    acquire({ wait: 300 })
    const first = engine.take('enqueue')
    expect(first.operation.wait).toBe(300)
    first.answer(queued(first.operation.request.id, 100))
    await settle()
    acquire({ wait: 900 })
    acquire({ wait: 200 })
    clock.advance(100)
    const look = engine.take('checkIn')
    expect(look.operation.wait).toBe(800)
    look.answer({ state: 'gone' })
    await settle()
    expect(engine.take('enqueue').operation.wait).toBe(800)
  })

  test('a waiter checks in at the time that the engine gave, not sooner', async () => {
    const { clock, engine, acquire } = await start()
    acquire()
    const { operation, answer } = engine.take('enqueue')
    answer(queued(operation.request.id, 700))
    await settle()
    clock.advance(699)
    expect(engine.words).toBe('enqueue')
    clock.advance(1)
    expect(engine.take('checkIn').operation).toMatchObject({ request: operation.request, lease: 30_000 })
  })

  test('waiters report in time that they live', async () => {
    const { clock, engine, box } = await start()
    const heard = new Map<string, number[]>()
    const answerAll = async (): Promise<void> => {
      for (const { type, request } of engine.asked.splice(0) as Enqueue[]) {
        const { id } = request
        heard.set(id, [...(heard.get(id) ?? []), clock.now()])
        engine.take(type, id).answer(queued(id, 60_000))
      }
      await settle()
    }
    for (const key of ['one', 'two', 'three']) {
      box
        .mutex(key)
        .acquire()
        .catch(() => undefined)
      for (let time = 0; time < 7000; time += 10) {
        await answerAll()
        clock.advance(10)
      }
    }
    await answerAll()
    for (const times of heard.values()) {
      const pauses = times.slice(1).map((time, index) => time - times[index]!)
      expect(Math.min(...pauses)).toBeGreaterThanOrEqual(HEARTBEAT_INTERVAL / 2)
      expect(Math.max(...pauses)).toBeLessThanOrEqual(HEARTBEAT_INTERVAL + 10)
    }
    await box.close()
  })

  test('far from the engine, a caller keeps the place of one that waits for a shorter time', async () => {
    const { clock, engine, acquire } = await start()
    acquire({ wait: 200 })
    const next = acquire()
    const { operation, answer } = engine.take('enqueue')
    expect(operation.wait).toBe(200)
    clock.advance(600)
    await settle()
    answer(queued(operation.request.id))
    await settle()
    // The engine keeps the place for 1200 ms from the arrival of the enqueue, which is a little longer from its
    // sending.
    clock.advance(267)
    expect(engine.take('checkIn').operation.wait).toBe(Infinity)
    expect(next.settled).toBe(false)
  })

  test.for(['acquire', 'tryAcquire'] as const)(
    'each grant of %s that is reported as lost early is checked',
    async method => {
      const { engine, box } = await start()
      const semaphore = box.semaphore('key', { max: 4 })
      const grants = [semaphore[method](), semaphore[method]()]
      const questions = grants.map(() => engine.take('enqueue'))
      const ids = questions.map(({ operation }) => operation.request.id)
      for (const id of ids) engine.listener.lost(id)
      for (const [index, question] of questions.entries()) question.answer(held(ids[index]!, index + 1))
      await Promise.all(grants)
      await settle()
      const checked = engine.asked.flatMap(each => (each.type === 'renew' ? [each.request.id] : []))
      expect(checked.sort()).toEqual(ids.sort())
    },
  )

  test('a try does not wait, and sends nothing while its own box holds or waits', async () => {
    const { engine, box, acquire, holder } = await start()
    const tried = new Outcome(box.mutex('key').tryAcquire())
    const question = engine.take('enqueue')
    expect(question.operation.wait).toBe(0)
    question.answer({ state: 'busy' })
    await settle()
    expect(tried.settled).toBe(true)
    expect(tried.value).toBeUndefined()
    const grant = await holder(3)
    expect(await box.mutex('key').tryAcquire()).toBeUndefined()
    acquire()
    expect(await box.mutex('key').tryAcquire()).toBeUndefined()
    expect(engine.words).toBe('enqueue enqueue')
    grant.assertHeld()
  })
})

describe('an answer that comes late', () => {
  test('an enqueue that the engine has not begun is withdrawn when all callers gave up', async () => {
    const { clock, engine, acquire } = await start()
    engine.congested = true
    const asked = acquire({ wait: 50 })
    const other = acquire({ wait: 80 })
    clock.advance(50)
    await settle()
    expect(asked.error).toBeInstanceOf(TimedOutError)
    expect(engine.open).toBe(1)
    clock.advance(30)
    await settle()
    expect(other.error).toBeInstanceOf(TimedOutError)
    expect(engine.open).toBe(0)
    expect(engine.words).toBe('enqueue')
    const next = acquire()
    await grantNext(engine, 7)
    expect(next.value!.token).toBe(7n * 1024n)
  })

  test('a caller with another lease gets the grant on its own terms', async () => {
    const { clock, engine, acquire } = await start()
    acquire({ wait: 50, lease: 60_000 })
    const { operation, answer } = engine.take('enqueue')
    const next = acquire({ lease: 400, renew: false })
    clock.advance(50)
    answer(held(operation.request.id, 6))
    await settle()
    expect(next.settled).toBe(false)
    clock.advance(10)
    const checkIn = engine.take('checkIn')
    expect(checkIn.operation).toMatchObject({ request: operation.request, lease: 400 })
    checkIn.answer(held(operation.request.id, 6))
    await settle()
    expect(next.value!.expiresIn()).toBe(390)
    clock.advance(389)
    next.value!.assertHeld()
    clock.advance(1)
    expect(() => next.value!.assertHeld()).toThrow(LostError)
  })

  test('a grant that arrives after the box was closed is not given', async () => {
    const { engine, box, acquire } = await start()
    const asked = acquire()
    const tried = new Outcome(box.mutex('other').tryAcquire())
    const questions = [engine.take('enqueue'), engine.take('enqueue')]
    await box.close()
    for (const { operation, answer } of questions) answer(held(operation.request.id, 6))
    await settle()
    expect(asked.error).toBeInstanceOf(ClosedError)
    expect(tried.error).toBeInstanceOf(ClosedError)
    expect(tried.value).toBeUndefined()
  })
})

describe('an engine that fails', () => {
  test('a request that was certainly not applied is not cancelled', async () => {
    const { engine, box, acquire } = await start()
    const asked = [acquire(), acquire()]
    const failure = new UnavailableError('out of reach')
    engine.take('enqueue').fail(failure)
    await settle()
    for (const { error } of asked) expect(error).toBe(failure)
    const tried = new Outcome(box.mutex('key').tryAcquire())
    engine.take('enqueue').fail(failure)
    await settle()
    expect(tried.error).toBe(failure)
    expect(engine.words).toBe('enqueue enqueue')
  })

  test('a request that may have been applied is cancelled', async () => {
    const { engine, box, acquire } = await start()
    const failure = new IndeterminateError('no answer')
    const asked = acquire()
    const first = engine.take('enqueue')
    first.fail(failure)
    await settle()
    expect(asked.error).toBe(failure)
    expect(engine.take('cancel').operation.request.id).toBe(first.operation.request.id)
    const tried = new Outcome(box.mutex('key').tryAcquire())
    const second = engine.take('enqueue')
    second.fail(failure)
    await settle()
    expect(tried.error).toBe(failure)
    expect(engine.take('cancel').operation.request.id).toBe(second.operation.request.id)
  })

  test('a failed check-in keeps the place, and is repeated after a pause', async () => {
    for (const failure of [new UnavailableError('out of reach'), new IndeterminateError('no answer')]) {
      const { clock, engine, acquire } = await start()
      const asked = acquire()
      const { operation, answer } = engine.take('enqueue')
      answer(queued(operation.request.id, 1000))
      await settle()
      clock.advance(1000)
      for (let round = 0; round < 3; round++) {
        engine.take('checkIn').fail(failure)
        await settle()
        clock.advance(199)
        expect(engine.open).toBe(0)
        clock.advance(1)
      }
      engine.take('checkIn').answer(held(operation.request.id, 8))
      await settle()
      expect(asked.value!.expiresIn()).toBe(30_000)
      expect(engine.words).toBe('enqueue checkIn checkIn checkIn checkIn')
    }
  })

  test('a failed release is repeated in the background, and its caller gets the error', async () => {
    for (const failure of [new UnavailableError('out of reach'), new IndeterminateError('no answer')]) {
      const { engine, holder } = await start()
      const grant = await holder(7)
      const released = new Outcome(grant.release())
      const { operation, fail } = engine.take('release')
      fail(failure)
      await settle()
      expect(released.error).toBe(failure)
      const again = engine.take('release')
      expect(again.operation).toEqual(operation)
      again.fail(failure)
      await settle()
      expect(engine.open).toBe(0)
    }
  })
})

describe('turns', () => {
  test('a grant goes through 16 turns, then the engine is asked for other waiters', async () => {
    const { engine, acquire, holder } = await start()
    let grant = await holder(7)
    const waiting = Array.from({ length: 20 }, () => acquire())
    for (let turn = 1; turn < 16; turn++) {
      await grant.release()
      grant = waiting[turn - 1]!.value!
      expect(grant.token).toBe(7n * 1024n + BigInt(turn))
      expect(waiting[turn]!.settled).toBe(false)
    }
    expect(engine.words).toBe('enqueue')
    const released = new Outcome(grant.release())
    const { operation } = engine.take('extendOrYield')
    expect(operation).toMatchObject({ number: 7, lease: 30_000 })
    await settle()
    expect(released.settled).toBe(false)
    expect(waiting[15]!.settled).toBe(false)
  })

  test('a grant goes from turn to turn for 5 ms from its arrival, then the engine is asked', async () => {
    const { clock, engine, acquire } = await start()
    const [first, second, third] = [acquire(), acquire(), acquire()]
    const { operation, answer } = engine.take('enqueue')
    clock.advance(20)
    answer(held(operation.request.id, 7))
    await settle()
    clock.advance(4.9)
    await first.value!.release()
    await settle()
    expect(second.settled).toBe(true)
    clock.advance(0.1)
    void second.value!.release()
    expect(engine.words).toBe('enqueue extendOrYield')
    expect(third.settled).toBe(false)
  })

  test('an extended grant has a new number, a full lease from before the request, and new turns', async () => {
    const { clock, engine, acquire, holder } = await start()
    const grant = await holder(7)
    const waiting = [acquire(), acquire()]
    clock.advance(5)
    const released = new Outcome(grant.release())
    const { operation, answer } = engine.take('extendOrYield')
    clock.advance(3)
    answer(held(operation.request.id, 9))
    await settle()
    expect(released.settled).toBe(true)
    expect(released.error).toBeUndefined()
    expect(waiting[0]!.value!.token).toBe(9n * 1024n)
    expect(waiting[0]!.value!.expiresIn()).toBe(30_000 - 3)
    await waiting[0]!.value!.release()
    await settle()
    expect(waiting[1]!.value!.token).toBe(9n * 1024n + 1n)
    // The box renews it like any other grant.
    clock.advance(10_000)
    expect(engine.take('renew').operation).toMatchObject({ request: operation.request, number: 9 })
  })

  test('a failed extendOrYield releases the grant, and the next caller waits on', async () => {
    for (const failure of [new UnavailableError('out of reach'), new IndeterminateError('no answer')]) {
      const { clock, engine, acquire, holder } = await start()
      const grant = await holder(7)
      const waiting = acquire()
      clock.advance(5)
      const released = new Outcome(grant.release())
      const { operation, fail } = engine.take('extendOrYield')
      fail(failure)
      await settle()
      expect(released.error).toBe(failure)
      expect(engine.take('cancel').operation.request.id).toBe(operation.request.id)
      // The next request of the failed call may have arrived.
      clock.advance(200)
      const checkIn = engine.take('checkIn')
      expect(checkIn.operation.request.id).toBe(operation.next.id)
      checkIn.answer({ state: 'gone' })
      await settle()
      await grantNext(engine, 20)
      expect(waiting.value!.token).toBe(20n * 1024n)
      expect(engine.open).toBe(0)
    }
  })

  /**
   * Returns a grant after an extendOrYield with this number of local callers, and without other waiters in the engine.
   */
  const alone = async (callers: number) => {
    const { clock, engine, acquire, holder } = await start()
    const first = await holder(7)
    const waiting = Array.from({ length: callers }, () => acquire())
    clock.advance(5)
    void first.release()
    const { operation, answer } = engine.take('extendOrYield')
    answer({ state: 'held', id: operation.next.id, number: 9, isUncontended: true })
    await settle()
    return { clock, engine, acquire, waiting, id: operation.next.id }
  }

  test('a grant without other waiters continues, and hints are read every 16 turns or 5 ms', async () => {
    const { clock, engine, waiting, id } = await alone(40)
    for (let turn = 0; turn < 20; turn++) {
      const released = new Outcome(waiting[turn]!.value!.release())
      const isHeardFirst = turn === 15
      expect(waiting[turn + 1]!.settled).toBe(false)
      await Promise.resolve()
      expect(waiting[turn + 1]!.settled).toBe(!isHeardFirst)
      await settle()
      expect(released.error).toBeUndefined()
      expect(waiting[turn + 1]!.value!.token).toBe(9n * 1024n + BigInt(turn + 1))
    }
    clock.advance(5)
    void waiting[20]!.value!.release()
    await Promise.resolve()
    expect(waiting[21]!.settled).toBe(false)
    await settle()
    expect(engine.words).toBe('enqueue extendOrYield')

    // The hint comes between two turns. The box may still pass on turns for a short time.
    engine.listener.contended(id)
    await waiting[21]!.value!.release()
    expect(engine.words).toBe('enqueue extendOrYield')
    clock.advance(5)
    void waiting[22]!.value!.release()
    expect(engine.words).toBe('enqueue extendOrYield extendOrYield')
  })

  test('a grant that another request wants while hints are read is passed on', async () => {
    const { clock, engine, waiting, id } = await alone(2)
    clock.advance(5)
    void waiting[0]!.value!.release()
    engine.listener.contended(id)
    await settle()
    expect(engine.words).toBe('enqueue extendOrYield extendOrYield')
    expect(waiting[1]!.settled).toBe(false)
  })

  test('a grant without other waiters continues as far as its number has room for turns', async () => {
    const { engine, waiting } = await alone(1025)
    for (let turn = 0; turn < 1023; turn++) await waiting[turn]!.value!.release()
    expect(waiting[1023]!.value!.token).toBe(10n * 1024n - 1n)
    expect(engine.words).toBe('enqueue extendOrYield')
    void waiting[1023]!.value!.release()
    expect(engine.words).toBe('enqueue extendOrYield extendOrYield')
  })

  test('an extended grant without callers is released; one that was lost is reported as lost', async () => {
    for (const isLost of [false, true]) {
      const { clock, engine, acquire, waiting, id } = await alone(1)
      const leave = new AbortController()
      const other = acquire({ signal: leave.signal })
      clock.advance(5)
      const { signal } = waiting[0]!.value!
      const released = new Outcome(waiting[0]!.value!.release())
      if (isLost) {
        engine.listener.lost(id)
        engine.take('renew').answer(false)
      } else leave.abort()
      await settle()
      expect(engine.words).toBe(
        isLost ? 'enqueue extendOrYield renew cancel enqueue' : 'enqueue extendOrYield release',
      )
      if (!isLost) engine.take('release').answer(true)
      await settle()
      expect(released.settled).toBe(true)
      if (isLost) expect(released.error).toBeInstanceOf(LostError)
      else expect(released.error).toBeUndefined()
      expect(signal.reason).toBe(released.error)
      expect(other.settled).toBe(!isLost)
    }
  })

  test('a grant that was extended with another lease than the next caller wants is released', async () => {
    const { clock, engine, acquire, holder } = await start()
    const grant = await holder(7)
    acquire({ wait: 20 })
    const next = acquire({ lease: 5000 })
    clock.advance(5)
    void grant.release()
    const { operation, answer } = engine.take('extendOrYield')
    clock.advance(20)
    await settle()
    answer(held(operation.request.id, 8))
    await settle()
    expect(engine.take('release').operation.number).toBe(8)
    const again = engine.take('enqueue')
    expect(again.operation.lease).toBe(5000)
    again.answer(held(again.operation.request.id, 9))
    await settle()
    expect(next.value!.expiresIn()).toBe(5000)
  })

  test('a turn needs half of the lease left, and the same lease and renewal', async () => {
    for (const [wait, options] of [
      [0, { lease: 6000 }],
      [0, { renew: false }],
      [15_001, {}],
    ] as const) {
      const { clock, engine, acquire, holder } = await start()
      const grant = await holder(7, { renew: true })
      acquire(options)
      clock.freeze(wait)
      void grant.release()
      expect(engine.words).toBe('enqueue extendOrYield')
    }
  })

  test('a write grant that was downgraded does not go from turn to turn, not even before the answer', async () => {
    const { engine, box } = await start()
    const { write } = box.readWriteLock('key')
    const first = new Outcome(write.acquire())
    await grantNext(engine, 3)
    const second = new Outcome(write.acquire())
    const downgraded = new Outcome(first.value!.downgrade())
    const released = new Outcome(first.value!.release())
    await settle()
    expect(second.settled).toBe(false)
    expect(engine.words).toBe('enqueue downgrade release enqueue')
    engine.take('downgrade').answer(true)
    engine.take('release').answer(true)
    await settle()
    expect([downgraded.error, released.error]).toEqual([undefined, undefined])
    await grantNext(engine, 4)
    expect(second.value!.token).toBe(4n * 1024n)
  })
})

describe('labels', () => {
  const labelOf = ({ value }: Outcome<Grant>) =>
    (JSON.parse(JSON.stringify(value)) as { label?: string }).label

  test('a grant has the label of its caller, whichever request and turn it came by', async () => {
    const { clock, engine, acquire } = await start()
    const left = acquire({ label: 'left', wait: 50 })
    const callers = ['first', 'turn', undefined, 'extended'].map(label => acquire({ label }))
    const { operation, answer } = engine.take('enqueue')
    expect(operation.request.label).toBe('left')
    clock.advance(50)
    await settle()
    expect(left.error).toBeInstanceOf(TimedOutError)
    answer(held(operation.request.id, 7))
    await settle()
    for (const caller of callers.slice(0, 3)) await caller.value!.release().then(settle)
    expect(callers.map(({ settled }) => settled)).toEqual([true, true, true, true])
    const last = acquire({ label: 'last' })
    clock.advance(5)
    const released = callers[3]!.value!.release()
    engine.take('extendOrYield').answer(held(operation.request.id, 8))
    await released
    expect([...callers, last].map(labelOf)).toEqual(['first', 'turn', undefined, 'extended', 'last'])
  })
})

describe('giving up', () => {
  test('only the last caller cancels the request', async () => {
    const { clock, engine, acquire } = await start()
    const first = acquire({ wait: 100 })
    const second = acquire({ wait: 200 })
    const request = await queueNext(engine)
    clock.advance(100)
    await settle()
    expect(first.error).toBeInstanceOf(TimedOutError)
    expect(second.settled).toBe(false)
    expect(engine.open).toBe(0)
    clock.advance(100)
    await settle()
    expect(second.error).toBeInstanceOf(TimedOutError)
    expect(engine.take('cancel').operation.request.id).toBe(request.id)
    expect(clock.nextAt()).toBeUndefined()
  })
})

describe('closing', () => {
  test('an engine that ends the session ends everything, with its reason', async () => {
    const { clock, engine, box, acquire, holder } = await start()
    const grant = await holder(7)
    const waiting = acquire()
    const cause = new UnavailableError('the session has expired')
    engine.listener.ended(cause)
    await settle()
    expect(() => grant.assertHeld()).toThrow(/the session has expired/)
    expect(waiting.error).toBe(cause)
    await expect(box.mutex('key').acquire()).rejects.toBe(cause)
    await expect(box.store('s').get('k')).rejects.toBe(cause)
    expect(engine.words).toBe('enqueue')
    clock.advance(100_000)
    expect(engine.words).toBe('enqueue')
  })
})

describe('a box that drains', () => {
  test('a task that comes while a lease is asked for again gets a request of its own', async () => {
    const { clock, engine, box, acquire, holder } = await start()
    const first = await holder(7)
    let goOn: () => void = () => undefined
    const going = new Promise<void>(resolve => (goOn = resolve))
    const outer = new Outcome(
      box.mutex('outer').run(async () => {
        await going
        return box.mutex('key').run(grant => grant.token)
      }),
    )
    const outerRequest = await grantNext(engine, 8)
    const waiting = acquire()
    clock.advance(5)
    void first.release()
    const { operation, answer } = engine.take('extendOrYield')

    void box.close({ drain: true })
    goOn()
    await settle()
    expect(waiting.error).toBeInstanceOf(ClosedError)
    answer(queued(operation.next.id))
    await settle()
    engine.take('cancel').answer(undefined)
    const request = await grantNext(engine, 9)
    for (const id of [request.id, outerRequest.id]) {
      engine.take('release', id).answer(true)
      await settle()
    }
    expect(outer.value).toBe(9n * 1024n)
  })
})

describe('an engine with a mistake', () => {
  const answers: readonly unknown[] = [undefined, null, 5, {}, { state: 'granted', id: 'a', number: 1 }]
  const refused = { code: 'INDETERMINATE', message: expect.stringContaining('with an unknown') as string }

  test.each(answers)('the caller gets an error when the answer is %j, at once or later', async answer => {
    for (const given of [answer, Promise.resolve(answer)]) {
      const { engine, acquire } = await start()
      engine.submit = () => given as never
      const asked = acquire()
      await settle()
      expect(asked.error).toMatchObject(refused)
      const attempted = acquire({ wait: 0 })
      await settle()
      expect(attempted.error).toMatchObject(refused)
    }
  })

  test('an invalid answer to a check-in or an extendOrYield ends the wait and cancels the request', async () => {
    const { clock, engine, acquire, holder } = await start()
    const waiting = acquire({ lease: 250 })
    await queueNext(engine, 100)
    for (let look = 0; look < 2; look++) {
      clock.advance(200)
      engine.take('checkIn').answer(undefined as never)
      await settle()
    }
    expect(waiting.error).toMatchObject(refused)
    engine.take('cancel').answer(undefined)

    const grant = await holder(7)
    const next = acquire()
    clock.advance(100)
    const released = new Outcome(grant.release())
    engine.take('extendOrYield').answer({ state: 'granted' } as never)
    await settle()
    expect(released.error).toMatchObject(refused)
    engine.take('cancel').answer(undefined)
    while (!next.error) {
      clock.advance(200)
      engine.take('checkIn').answer({ state: 'granted' } as never)
      await settle()
    }
    expect(next.error).toMatchObject(refused)
  })
})

describe('readers and permits together', () => {
  test('readers that wait when a grant arrives use it together, and the last one releases it', async () => {
    const { engine, box } = await start()
    const read = () => new Outcome(box.readWriteLock('key').read.acquire())
    const readers = [read(), read(), read()]
    expect(engine.words).toBe('enqueue')
    const { operation, answer } = engine.take('enqueue')
    answer(held(operation.request.id, 9))
    await settle()
    expect(readers.map(({ value }) => value!.token)).toEqual([9n * 1024n, 9n * 1024n + 1n, 9n * 1024n + 2n])
    await readers[1]!.value!.release()
    await readers[0]!.value!.release()
    expect(() => readers[0]!.value!.assertHeld()).toThrow(LostError)
    readers[2]!.value!.assertHeld()
    expect(engine.words).toBe('enqueue')
    const released = readers[2]!.value!.release()
    engine.take('release').answer(true)
    await released
    expect(engine.words).toBe('enqueue release')
  })

  test('a reader that comes after the grant, or wants another lease, has a request of its own', async () => {
    const { engine, box } = await start()
    const read = (options?: LockOptions) => new Outcome(box.readWriteLock('key').read.acquire(options))
    const readers = [read(), read({ lease: 900 }), read({ label: 'other' })]
    await grantNext(engine, 9)
    expect(readers.map(({ settled }) => settled)).toEqual([true, false, false])
    const second = engine.take('enqueue')
    expect(second.operation.lease).toBe(900)
    second.answer(held(second.operation.request.id, 10))
    await settle()
    expect(readers.map(({ settled }) => settled)).toEqual([true, true, false])
    expect(engine.take('enqueue').operation.request.label).toBe('other')
  })

  test('callers of a semaphore ask together, and only as many as it has permits', async () => {
    const { engine, box } = await start()
    const callers = Array.from({ length: 5 }, () => new Outcome(box.semaphore('key', { max: 3 }).acquire()))
    expect(engine.words).toBe('enqueue enqueue enqueue')
    for (const number of [7, 8, 9]) {
      const { operation, answer } = engine.take('enqueue')
      answer(held(operation.request.id, number))
    }
    await settle()
    expect(callers.map(({ settled }) => settled)).toEqual([true, true, true, false, false])
    // The box has all permits, so it passes them on locally.
    expect(engine.open).toBe(0)
    await callers[1]!.value!.release()
    await settle()
    expect(callers[3]!.value!.token).toBe(8n * 1024n + 1n)
  })

  test('callers that give up before the answers cost no earlier caller its place', async () => {
    const { clock, engine, box } = await start()
    const acquire = (wait: number) => new Outcome(box.semaphore('key', { max: 9 }).acquire({ wait }))
    const callers = [acquire(5000), acquire(5000), acquire(50), acquire(50)]
    const questions = callers.map(() => engine.take('enqueue'))
    const [first, second, ...left] = questions.map(({ operation }) => operation.request.id)
    clock.advance(50)
    await settle()
    for (const { operation, answer } of questions) answer(queued(operation.request.id))
    await settle()
    expect(left.map(id => engine.take('cancel', id).operation.request.id)).toEqual(left)
    expect(engine.open).toBe(0)
    for (const id of [first!, second!]) {
      engine.listener.wake(id)
      engine.take('checkIn', id).answer(held(id, 9))
      await settle()
    }
    expect(callers.map(({ value }) => value !== undefined)).toEqual([true, true, false, false])
  })
})
