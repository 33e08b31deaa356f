import { hostname } from 'node:os'
import { describe } from './checks.js'
import { assert, rejection } from './assert.js'
import {
  AbortedError,
  type Box,
  BusyError,
  ClosedError,
  ConflictError,
  DeadlockError,
  type ErrorCode,
  IndeterminateError,
  InvalidArgumentError,
  LostError,
  SignalboxError,
  TimedOutError,
  UnavailableError,
} from 'signalbox'
import { testOn } from './boxes.js'
import { keepsValues, type EngineFixture } from './fixture.js'
import { LAPSING, NOTIFIED_BY_RENEWAL, locks, nothingHeld, pause, queued, until } from './time.js'

type ErrorClass = abstract new (...args: never[]) => SignalboxError

/** P10: each kind of failure has its own error class, with code, key, engine and cause. */
export function errors(fixture: EngineFixture): void {
  describe('P10 specific errors', () => {
    const test = testOn(fixture)

    /** Checks the class and all properties of an error. */
    async function expectError(
      failing: Promise<unknown>,
      type: ErrorClass,
      code: ErrorCode,
      key: string | undefined,
      box: Box,
    ): Promise<SignalboxError> {
      const error = await rejection(failing)
      assert.isA(error, type)
      assert.isA(error, SignalboxError)
      const failure = error as SignalboxError
      assert.equal(failure.name, (type as unknown as { name: string }).name)
      assert.equal(failure.code, code)
      assert.above(failure.message.length, 10)
      assert.equal(failure.engine, await engineOf(box))
      if (key !== undefined) {
        assert.equal(failure.key, key)
        assert.includes(failure.message, key)
      }
      return failure
    }

    /** Returns the name of the engine in errors. */
    async function engineOf(box: Box): Promise<string> {
      const held = await box.mutex('name of the engine').acquire()
      const error = await rejection(box.mutex('name of the engine').acquire({ wait: 0 }))
      await held.release()
      return (error as BusyError).engine!
    }

    test('busy', async boxes => {
      const [one, other] = await boxes.pair()
      await one.mutex('a', 'b').acquire()
      await expectError(other.mutex('b', 'a').acquire({ wait: 0 }), BusyError, 'BUSY', 'a, b', other)
      if (!keepsValues(fixture)) return
      const commit = other.store('s').transaction(['k'], () => 1, { wait: 0 })
      await commit
      await one.mutex('s/k').acquire()
      const busy = other.store('s').transaction(['k'], () => 1, { wait: 0 })
      await expectError(busy, BusyError, 'BUSY', 's/k', other)
    })

    test('timed out', async boxes => {
      const [one, other] = await boxes.pair()
      await one.mutex('key').acquire()
      await expectError(other.mutex('key').acquire({ wait: 20 }), TimedOutError, 'TIMED_OUT', 'key', other)
      if (!keepsValues(fixture)) return
      await one.mutex('s/k').acquire()
      for (const options of [{}, { group: { maxSize: 4, maxTime: 5 } }]) {
        const waiting = other.store('s', options).transaction(['k'], () => 1, { wait: 20 })
        await expectError(waiting, TimedOutError, 'TIMED_OUT', undefined, other)
      }
    })

    test('the error of a timed-out waiter names the true holder', async boxes => {
      const one = await boxes.open({ label: 'the box' })
      const other = await boxes.open()
      await one.mutex('key').acquire({ label: 'billing' })
      const holder = { session: one.session, host: hostname(), pid: process.pid, label: 'billing' }
      // The age in a reply lacks the time that the reply takes, which can be long for the first one of a connection.
      await pause(100)
      const timedOut = async (box: Box): Promise<TimedOutError> =>
        (await rejection(box.mutex('key').acquire({ wait: 200 }))) as TimedOutError
      // Only some engines report the holder in another box.
      const failure = await timedOut(other)
      assert.isA(failure, TimedOutError)
      if (failure.holder) {
        assert.has(failure.holder, holder)
        assert.above(failure.holder.age, 150)
        assert.match(failure.message, / \(held by "billing" on \S+, pid \d+, requested \d\S+ ago\)$/)
      }
      assert.has(await timedOut(one), { holder })
    })

    test('aborted, with the reason of the signal as its cause', async boxes => {
      const [one, other] = await boxes.pair()
      await one.mutex('key').acquire()
      await one.mutex('s/k').acquire()
      const reason = new Error('changed my mind')
      const signal = AbortSignal.abort(reason)
      const failure = await expectError(
        other.mutex('key').acquire({ signal }),
        AbortedError,
        'ABORTED',
        'key',
        other,
      )
      assert.equal(failure.cause, reason)
      if (!keepsValues(fixture)) return
      for (const options of [{}, { group: { maxSize: 4, maxTime: 5 } }]) {
        const controller = new AbortController()
        const waiting = other.store('s', options).transaction(['k'], () => 1, { signal: controller.signal })
        setTimeout(() => controller.abort(reason), 20)
        const late = await expectError(waiting, AbortedError, 'ABORTED', undefined, other)
        assert.equal(late.cause, reason)
      }
    })

    test('unavailable and indeterminate, as the engine reported', async boxes => {
      const [box, engine] = await boxes.withFaults()
      const name = engine.name
      for (const [type, code] of [
        [UnavailableError, 'UNAVAILABLE'],
        [IndeterminateError, 'INDETERMINATE'],
      ] as const) {
        const cause = new Error('the line is cut')
        const context = { key: 'key', engine: name, cause }
        const failure = new type('the engine is out of reach: key', context)
        engine.intercept = operation =>
          operation.type === 'cancel' ? Promise.resolve(undefined) : Promise.reject(failure)
        const failing = [
          () => box.mutex('key').acquire(),
          () => box.mutex('key').tryAcquire(),
          () => box.mutex('key').run(() => 1),
          () => box.store('s').get('k'),
          () => box.store('s').put('k', 1),
          () => box.store('s').transaction(['k'], () => 1),
          () => locks(box),
          () => box.forceRelease('key', 1n),
          () => box.revoke('unknown session'),
          () => box.election('e').leader(),
        ]
        for (const fail of failing) {
          const error = await rejection(fail())
          assert.isA(error, type)
          assert.has(error, { code, key: 'key', engine: name, cause })
        }
        engine.restore()
      }
      assert.notEqual(await box.mutex('key').tryAcquire(), undefined)
    })

    test('a grant whose answer was lost is released', async boxes => {
      const other = await boxes.open()
      const [box, engine] = await boxes.withFaults()
      engine.intercept = async (operation, execute) => {
        const outcome = await execute()
        if (operation.type === 'enqueue') throw new IndeterminateError('the answer was lost')
        return outcome
      }
      for (const verb of ['acquire', 'tryAcquire'] as const) {
        await assert.rejects(box.mutex('key')[verb](), IndeterminateError)
        await nothingHeld(other)
      }
    })

    test('an unexpected error of an engine becomes an IndeterminateError', async boxes => {
      const [box, engine] = await boxes.withFaults()
      engine.intercept = operation =>
        operation.type === 'cancel' ? Promise.resolve(undefined) : Promise.reject(new TypeError('a slip'))
      for (const verb of ['acquire', 'tryAcquire'] as const) {
        const error = await rejection(box.mutex('key')[verb]())
        assert.isA(error, IndeterminateError)
        assert.isA((error as Error).cause, TypeError)
      }
      engine.restore()
    })

    test('lost', async boxes => {
      const [one, other] = await boxes.pair()
      const lapsing = await one.mutex('a', 'b').acquire({ lease: LAPSING, renew: false })
      await until('it is lost', () => lapsing.expiresIn() === 0)
      await expectError(lapsing.release(), LostError, 'LOST', 'a, b', one)
      await expectError(
        asPromise(() => lapsing.assertHeld()),
        LostError,
        'LOST',
        undefined,
        one,
      )
      const released = await one.mutex('key').acquire()
      await released.release()
      await expectError(
        asPromise(() => released.assertHeld()),
        LostError,
        'LOST',
        'key',
        one,
      )
      const taken = await one.mutex('key').acquire({ lease: NOTIFIED_BY_RENEWAL })
      const lost = new Promise(resolve => {
        taken.signal.addEventListener('abort', () => resolve(taken.signal.reason))
      })
      await other.forceRelease('key', taken.token)
      await expectError(Promise.reject(await lost), LostError, 'LOST', 'key', one)
    })

    test.runIf(keepsValues(fixture))('conflict', async boxes => {
      const [one, other] = await boxes.pair()
      const store = one.store('s')
      await store.put('k', 'before')
      const failing = store.transaction(['k'], async transaction => {
        await other.store('s').put('k', 'between')
        transaction.put('k', 'after')
      })
      const failure = await expectError(failing, ConflictError, 'CONFLICT', 'k', one)
      assert.has(failure, { expected: { value: 'before' }, found: { value: 'between' } })
    })

    test('closed', async boxes => {
      const [one, other] = await boxes.pair()
      await other.mutex('key').acquire()
      const waiting = one.mutex('key').acquire()
      waiting.catch(() => undefined)
      await queued(other, 'key', 1)
      const name = await engineOf(one)
      await one.close()
      const failing: readonly Promise<unknown>[] = [
        waiting,
        one.mutex('key').acquire(),
        one.mutex('key').tryAcquire(),
        one.mutex('key').acquire({ wait: 0 }),
        one.mutex('key').run(() => 1),
        one.semaphore('key', { max: 1 }).acquire(),
        one.readWriteLock('key').read.acquire(),
        one.election('key').campaign(),
        one.election('key').leader(),
        one.store('s').get('k'),
        one.store('s').put('k', 1),
        one.store('s').delete('k'),
        one.store('s').compareAndSet('k', 0, 1),
        one.store('s').transaction(['k'], () => 1),
        one.store('s', { group: { maxSize: 4, maxTime: 5 } }).transaction(['k'], () => 1),
        one.store('s').watch('k').next(),
        locks(one),
        one.forceRelease('key', 1n),
        one.revoke('unknown session'),
      ]
      for (const outcome of await Promise.allSettled(failing)) {
        const error: unknown = outcome.status === 'rejected' ? outcome.reason : undefined
        assert.isA(error, ClosedError)
        assert.has(error, { code: 'CLOSED', name: 'ClosedError', engine: name })
      }
    })

    test('deadlock', async boxes => {
      const box = await boxes.open()
      await box.mutex('a', 'b').run(async () => {
        await expectError(box.mutex('a').acquire(), DeadlockError, 'DEADLOCK', 'a', box)
      })
    })

    test('a semaphore with another number of permits than the one in use is refused', async boxes => {
      const [one, other] = await boxes.pair()
      const grant = await one.semaphore('key', { max: 3 }).acquire()
      for (const box of [one, other]) {
        const wrong = box.semaphore('key', { max: 5 })
        for (const fail of [
          () => wrong.acquire(),
          () => wrong.tryAcquire(),
          () => wrong.run(() => 1),
          () => wrong.acquire({ wait: 0 }),
        ]) {
          const failure = await expectError(fail(), InvalidArgumentError, 'INVALID_ARGUMENT', 'key', box)
          assert.includes(failure.message, '3')
        }
      }
      await grant.release()
      // It is not in use any more, so the number may change.
      const changed = await other.semaphore('key', { max: 5 }).acquire({ permits: 5 })
      await changed.release()
    })
  })
}

async function asPromise(task: () => void): Promise<void> {
  task()
}
