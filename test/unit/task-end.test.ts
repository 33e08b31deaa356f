import { setTimeout } from 'node:timers/promises'
import { describe, expect } from 'vitest'
import { rejection } from '../../packages/conformance/src/assert.js'
import type { FaultInjectingEngine } from '../../packages/conformance/src/fault-injecting-engine.js'
import { LAPSING, nothingHeld, until } from '../../packages/conformance/src/time.js'
import {
  IndeterminateError,
  UnavailableError,
  type Box,
  type Grant,
  type LockOptions,
  type ReleaseFailedEvent,
  type SignalboxError,
} from '../../src/index.js'
import { test } from '../support/memory-boxes.js'

/** Message of the errors of failing operations. */
const CUT = 'the line is cut'

/** A verb that runs a task under a grant, and returns its result. */
type Verb = (box: Box, task: (grant: Grant) => Promise<string>, options: LockOptions) => Promise<string>

/** A failure of the engine while a task runs. */
interface Fault {
  readonly name: string
  /** Whether the grant is lost before the task ends. */
  readonly loses: boolean
  readonly fails: readonly ('release' | 'renew')[]
}

/** Lease of a grant that must not be lost, in milliseconds. */
const KEPT = 60_000

const FAULTS: readonly Fault[] = [
  { name: 'the release fails', loses: false, fails: ['release'] },
  { name: 'the grant is lost meanwhile', loses: true, fails: ['renew'] },
  { name: 'the grant is lost meanwhile and the release fails', loses: true, fails: ['renew', 'release'] },
]

const VERBS: readonly Verb[] = [
  (box, task, options) => box.mutex(fresh()).run(task, options),
  (box, task, options) => box.mutex(fresh(), fresh()).run(task, options),
  (box, task, options) => box.semaphore(fresh(), { max: 2 }).run(task, options),
  (box, task, options) => box.readWriteLock(fresh()).read.run(task, options),
  (box, task, options) => box.election(fresh()).lead(task, options),
]

/** All calls that take a task. */
const CALLS: readonly ((box: Box, task: () => unknown) => Promise<unknown>)[] = [
  (box, task) => box.mutex('key').run(task),
  (box, task) => box.semaphore('key', { max: 2 }).run(task),
  (box, task) => box.readWriteLock('key').read.run(task),
  (box, task) => box.readWriteLock('key').write.run(task),
  (box, task) => box.limiter('calls', { limit: 100, per: '1m' }).run(task),
  (box, task) => box.election('e').lead(task),
  (box, task) => box.store('s').transaction(['k'], task),
  (box, task) => box.store('s', { group: { maxSize: 2, maxTime: 10 } }).transaction(['k'], task),
]

let keys = 0
/** Returns a key that was not used before. */
const fresh = (): string => `key ${++keys}`

describe.concurrent('an error says whether the task ran', () => {
  for (const fault of FAULTS) {
    test(`the caller gets the task's result, or its error, when ${fault.name}`, async ({ boxes }) => {
      const [box, engine] = await boxes.withFaults()
      const unreleased = boxes.events<ReleaseFailedEvent>('lock:release-failed', box)
      const begin = failingOnce(engine, fault, 2 * VERBS.length)
      const options = { lease: leaseOf(fault) }
      const checks = VERBS.map(async verb => {
        const running = verb(
          box,
          outlasting(begin, fault, () => Promise.resolve('charged')),
          options,
        )
        if (!fault.loses) {
          expect(await running).toBe('charged')
          return
        }
        const about = { code: 'LOST', taskBegan: true, taskEnded: true, result: 'charged' }
        expect(await rejection(running)).toMatchObject(about)
      })
      const failures = VERBS.map(async verb => {
        const own = new Error('of the task')
        expect(
          await rejection(
            verb(
              box,
              outlasting(begin, fault, () => Promise.reject(own)),
              options,
            ),
          ),
        ).toBe(own)
      })
      await Promise.all([...checks, ...failures])
      const failed = fault.loses ? [] : [...checks, ...failures].map(() => CUT)
      expect(unreleased.map(({ error }) => (error as Error).message)).toStrictEqual(failed)
      engine.restore()
      await nothingHeld(box)
    })

    test(`\`await using\` keeps the block's result, or its error, when ${fault.name}`, async ({ boxes }) => {
      const [box, engine] = await boxes.withFaults()
      const options = { lease: leaseOf(fault) }
      const acquirers = [
        (): Promise<Grant> => box.mutex(fresh()).acquire(options),
        () => box.election(fresh()).campaign(options),
      ]
      const own = new Error('of the block')
      const begin = failingOnce(engine, fault, 2 * acquirers.length)
      await Promise.all(
        acquirers.map(async acquire => {
          const block = async (end: () => Promise<string>): Promise<string> => {
            await using grant = await acquire()
            return await outlasting(begin, fault, end)(grant)
          }
          const ends = [block(() => Promise.resolve('charged')), rejection(block(() => Promise.reject(own)))]
          expect(await Promise.all(ends)).toStrictEqual(['charged', own])
        }),
      )
      engine.restore()
    })
  }

  test('an explicit release rejects with its failure', async ({ boxes }) => {
    const [box, engine] = await boxes.withFaults()
    const unreleased = boxes.events<ReleaseFailedEvent>('lock:release-failed', box)
    for (const Failure of [UnavailableError, IndeterminateError]) {
      const grant = await box.mutex('key').acquire()
      const failure = new Failure(CUT)
      engine.fail(['release'], failure)
      expect(await rejection(grant.release())).toBe(failure)
      expect(unreleased.splice(0)).toMatchObject([
        { token: grant.token, keys: ['key'], error: failure, session: box.session },
      ])
      engine.restore()
    }
  })

  test('a task succeeds when its lease ends only during the release', async ({ boxes }) => {
    const [box, engine] = await boxes.withFaults()
    const other = await boxes.open()
    engine.intercept = async (operation, execute) => {
      if (operation.type === 'renew') throw new UnavailableError(CUT)
      if (operation.type !== 'release') return execute()
      const next = await other.mutex('key').acquire()
      const released = await execute()
      await next.release()
      return released
    }
    const running = box.mutex('key').run(
      grant => {
        grant.assertHeld()
        return 'charged'
      },
      // Longer than any stall of the process, because the task must end within it.
      { lease: 3000 },
    )
    expect(await running).toBe('charged')
  })

  test('an error before the task says that the task did not begin', async ({ boxes }) => {
    const [box, engine] = await boxes.withFaults()
    const cut = new UnavailableError(CUT)
    let calls = 0
    for (const call of CALLS) {
      engine.intercept = operation =>
        operation.type === 'cancel' ? Promise.resolve(undefined) : Promise.reject(cut)
      engine.interceptReserve = () => Promise.reject(cut)
      const error = await rejection(call(box, () => ++calls))
      expect(error).toBeInstanceOf(UnavailableError)
      expect(error).toMatchObject({ taskBegan: false, message: CUT })
      expect(calls).toBe(0)
      engine.restore()
      // The error of a call within a task is about another task, and is the task's own.
      const nested = box.mutex('outer').run(() => {
        engine.interceptReserve = () => Promise.reject(cut)
        engine.fail(['enqueue', 'read'], cut)
        return call(box, () => ++calls)
      })
      expect(await rejection(nested)).toMatchObject({ code: 'UNAVAILABLE', taskBegan: true })
      expect(calls).toBe(0)
      engine.restore()
    }
  })

  test("the task's own error does not say that the task did not begin", async ({ boxes }) => {
    const own = new UnavailableError('of the task')
    const box = await boxes.open()
    for (const call of CALLS) {
      const error = await rejection(call(box, () => Promise.reject(own)))
      expect(error).toBe(own)
      expect((error as SignalboxError).taskBegan).toBe(undefined)
    }
  })

  test('a frozen error is passed on, or wrapped when it is about another task', async ({ boxes }) => {
    const box = await boxes.open()
    for (const call of CALLS) {
      const own = Object.freeze(new UnavailableError('of the task'))
      expect(await rejection(call(box, () => Promise.reject(own)))).toBe(own)
      const ofAnother = Object.freeze(
        (await rejection(box.mutex('another').run(() => 1, { lease: -1 }))) as Error,
      )
      const error = await rejection(call(box, () => Promise.reject(ofAnother)))
      expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', taskBegan: true })
      expect((error as Error).cause).toBe(ofAnother)
    }
    const named = Object.freeze(new UnavailableError('of the naming'))
    const unnamed = box.store('s').transaction(
      () => Promise.reject(named),
      () => 1,
    )
    expect(await rejection(unnamed)).toMatchObject({ message: 'of the naming', taskBegan: false })
  })

  test('a task that the loss of its grant ends rejects with that loss', async ({ boxes }) => {
    const box = await boxes.open()
    const waits: ((grant: Grant) => Promise<unknown>)[] = [
      ({ signal }) => setTimeout(KEPT, undefined, { signal }),
      ({ signal }) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      async grant => {
        await until('the grant is lost', () => grant.signal.aborted)
        grant.assertHeld()
      },
    ]
    // An error that is unrelated to the grant is the task's own.
    const own = new Error('of the task')
    const fails = async (grant: Grant): Promise<void> => {
      await until('the grant is lost', () => grant.signal.aborted)
      throw own
    }
    const errors = await Promise.all(
      [...waits, fails].map((task, index) =>
        rejection(box.mutex(`short ${index}`).run(task, { lease: LAPSING, renew: false })),
      ),
    )
    expect(errors.pop()).toBe(own)
    for (const error of errors)
      expect(error).toMatchObject({ code: 'LOST', taskBegan: true, taskEnded: false })
  })

  test("a limiter returns the task's result when its share can not be returned", async ({ boxes }) => {
    const [box, engine] = await boxes.withFaults()
    const limiter = box.limiter('api', { limit: 10, per: '1m', concurrency: 1 })
    const given = await limiter.run(() => {
      engine.fail(['release'], new UnavailableError(CUT))
      return 'charged'
    })
    expect(given).toBe('charged')
    engine.restore()
  })
})

function leaseOf({ loses }: Fault): number {
  return loses ? LAPSING : KEPT
}

/** Returns a task that runs until its grant is lost, if the fault loses it. */
function outlasting<T>(
  begin: () => Promise<void>,
  { loses }: Fault,
  task: () => Promise<T>,
): (grant: Grant) => Promise<T> {
  return async grant => {
    await begin()
    if (loses) await until('the grant is lost', () => grant.signal.aborted)
    return task()
  }
}

/** Makes the engine fail once all tasks have begun, because a loss before the start of a task causes another error. */
function failingOnce(engine: FaultInjectingEngine, fault: Fault, tasks: number): () => Promise<void> {
  let begun = 0
  return async () => {
    if (++begun === tasks) engine.fail(fault.fails, new UnavailableError(CUT))
    await until('all tasks have begun', () => begun === tasks)
  }
}
