import type { Box, Grant, LockOptions } from '../index.js'
import type { ReleaseFailedEvent } from '../diagnostics.js'
import type { SignalboxError } from '../errors.js'
import { IndeterminateError, LostError, UnavailableError } from '../errors.js'
import { testOn } from './boxes.js'
import { describe } from './checks.js'
import { assert } from './assert.js'
import { hasLimits, keepsValues, type EngineFixture } from './fixture.js'
import type { Meddle, MeddledEngine } from './meddled-engine.js'
import { locks, until } from './time.js'

/** A verb that calls a task under a grant, and gives what the task gave. */
type Verb = (box: Box, task: (grant: Grant) => Promise<string>, options: LockOptions) => Promise<string>

/** How the engine fails while the task goes on. */
interface Fault {
  readonly name: string
  /** Whether the grant is lost before the task ends. */
  readonly loses: boolean
  readonly fails: readonly ('release' | 'renew')[]
}

/** The lease of a grant that is to be lost: milliseconds. */
const LOST_SOON = 300
/** The lease of a grant that is lost only while it is given back: milliseconds, longer than the stall of a loaded machine. */
const LOST_LATER = 1000
/** The lease of a grant that is not to be lost: milliseconds. */
const KEPT = 60_000

const FAULTS: readonly Fault[] = [
  { name: 'the release fails', loses: false, fails: ['release'] },
  { name: 'the grant is lost meanwhile', loses: true, fails: ['renew'] },
  { name: 'the grant is lost meanwhile and the release fails', loses: true, fails: ['renew', 'release'] },
]

const VERBS: readonly Verb[] = [
  (box, task, options) => box.mutex(fresh()).run(task, options),
  (box, task, options) => box.mutex(fresh(), fresh()).run(task, options),
  (box, task, options) => box.semaphore(fresh(), { permits: 2 }).run(task, options),
  (box, task, options) => box.readWriteLock(fresh()).read.run(task, options),
]

/** The verb of engines that keep values. */
const lead: Verb = (box, task, options) => box.election(fresh()).lead(task, options)

let keys = 0
/** A key that was not used before. */
const fresh = (): string => `key ${++keys}`

/** What failing operations tell. */
const CUT = 'the line is cut'

/** P10: a caller can tell whether its task ran. */
export function taskEnd(fixture: EngineFixture): void {
  const verbs = keepsValues(fixture) ? [...VERBS, lead] : VERBS

  describe('P10 an error tells whether the task ran', () => {
    const test = testOn(fixture)

    for (const fault of FAULTS) {
      test(`a task that ended is told with its result, and one that failed by its error, when ${fault.name}`, async boxes => {
        const [box, engine] = await boxes.meddled()
        const unreleased = boxes.heard<ReleaseFailedEvent>('lock:release-failed', box)
        const begin = failingOnce(engine, fault, 2 * verbs.length)
        const options = { lease: leaseOf(fault) }
        const checks = verbs.map(async verb => {
          const running = verb(
            box,
            outlasting(begin, fault, () => Promise.resolve('charged')),
            options,
          )
          if (!fault.loses) {
            assert.equal(await running, 'charged')
            return
          }
          const about = { code: 'LOST', taskBegan: true, taskEnded: true, result: 'charged' }
          assert.has(await rejection(running), about)
        })
        const failures = verbs.map(async verb => {
          const own = new Error('of the task')
          assert.equal(
            await rejection(
              verb(
                box,
                outlasting(begin, fault, () => Promise.reject(own)),
                options,
              ),
            ),
            own,
          )
        })
        await Promise.all([...checks, ...failures])
        const failed = fault.loses ? [] : [...checks, ...failures].map(() => CUT)
        assert.deepEqual(
          unreleased.map(({ error }) => (error as Error).message),
          failed,
        )
        engine.meddle = (_, carryOut) => carryOut()
        await until('nothing is held', async () => (await locks(box)).length === 0)
      })

      test(`\`await using\` leaves the block its result and its error when ${fault.name}`, async boxes => {
        const [box, engine] = await boxes.meddled()
        const options = { lease: leaseOf(fault) }
        const acquirers = [(): Promise<Grant> => box.mutex(fresh()).acquire(options)]
        if (keepsValues(fixture)) acquirers.push(() => box.election(fresh()).campaign(options))
        const own = new Error('of the block')
        const begin = failingOnce(engine, fault, 2 * acquirers.length)
        await Promise.all(
          acquirers.map(async acquire => {
            const block = async (end: () => Promise<string>): Promise<string> => {
              await using grant = await acquire()
              return await outlasting(begin, fault, end)(grant)
            }
            const ends = [
              block(() => Promise.resolve('charged')),
              rejection(block(() => Promise.reject(own))),
            ]
            assert.deepEqual(await Promise.all(ends), ['charged', own])
          }),
        )
        engine.meddle = (_, carryOut) => carryOut()
      })
    }

    test('a release that was asked for tells of its failure', async boxes => {
      const [box, engine] = await boxes.meddled()
      const unreleased = boxes.heard<ReleaseFailedEvent>('lock:release-failed', box)
      for (const Failure of [UnavailableError, IndeterminateError]) {
        const grant = await box.mutex('key').acquire()
        const failure = new Failure(CUT)
        engine.meddle = (operation, carryOut) =>
          operation.type === 'release' ? Promise.reject(failure) : carryOut()
        assert.equal(await rejection(grant.release()), failure)
        assert.has(unreleased.splice(0), [
          { token: grant.token, keys: ['key'], error: failure, session: box.session },
        ])
        engine.meddle = (_, carryOut) => carryOut()
      }
    })

    test('a task whose lease ran out only while it was given back was done under its lock', async boxes => {
      const [box, engine] = await boxes.meddled()
      const other = await boxes.open()
      engine.meddle = async (operation, carryOut) => {
        if (operation.type === 'renew') throw new UnavailableError(CUT)
        if (operation.type !== 'release') return carryOut()
        const next = await other.mutex('key').acquire()
        const released = await carryOut()
        await next.release()
        return released
      }
      const running = box.mutex('key').run(
        grant => {
          grant.assertHeld()
          return 'charged'
        },
        { lease: LOST_LATER },
      )
      assert.equal(await running, 'charged')
    })

    test('a task whose grant an operator took away unnoticed has a LostError with its result', async boxes => {
      const other = await boxes.open()
      const [box, engine] = await boxes.meddled()
      engine.hears = () => false
      const running = box.mutex('key').run(
        async grant => {
          await other.forceRelease('key', grant.token)
          return 'charged'
        },
        { lease: KEPT },
      )
      assert.has(await rejection(running), { code: 'LOST', taskEnded: true, result: 'charged' })
    })

    test('a task that a loss has stopped did not end', async boxes => {
      const box = await boxes.open()
      const running = box.mutex('key').run(
        async grant => {
          await until('the grant is lost', () => grant.signal.aborted)
          grant.assertHeld()
        },
        { lease: 60, renew: false },
      )
      const error = await rejection(running)
      assert.isA(error, LostError)
      assert.has(error, { taskEnded: false, result: undefined })
    })

    test('an error before the task says that it did not begin', async boxes => {
      const [box, engine] = await boxes.meddled()
      const cut = new UnavailableError(CUT)
      let calls = 0
      for (const call of callsOf(fixture)) {
        engine.meddle = operation =>
          operation.type === 'cancel' ? Promise.resolve(undefined) : Promise.reject(cut)
        engine.meddleReserve = () => Promise.reject(cut)
        const error = await rejection(call(box, () => ++calls))
        assert.isA(error, UnavailableError)
        assert.has(error, { taskBegan: false, message: CUT })
        assert.equal(calls, 0)
        engine.meddle = (_, carryOut) => carryOut()
        // The error of a call within a task is about another task, and is the task's own.
        const nested = box.mutex('outer').run(() => {
          engine.meddle = (operation, carryOut) =>
            ['enqueue', 'read'].includes(operation.type) ? Promise.reject(cut) : carryOut()
          return call(box, () => ++calls)
        })
        assert.has(await rejection(nested), { code: 'UNAVAILABLE', taskBegan: true })
        assert.equal(calls, 0)
        engine.meddle = (_, carryOut) => carryOut()
      }
    })

    test('the error of a task that did begin never says that it did not', async boxes => {
      const own = new UnavailableError('of the task')
      const box = await boxes.open()
      for (const call of callsOf(fixture)) {
        const error = await rejection(call(box, () => Promise.reject(own)))
        assert.equal(error, own)
        assert.equal((error as SignalboxError).taskBegan, undefined)
      }
    })

    test('a frozen error comes through, and tells of its own task', async boxes => {
      const box = await boxes.open()
      for (const call of callsOf(fixture)) {
        const own = Object.freeze(new UnavailableError('of the task'))
        assert.equal(await rejection(call(box, () => Promise.reject(own))), own)
        const ofAnother = Object.freeze(
          (await rejection(box.mutex('another').run(() => 1, { lease: -1 }))) as Error,
        )
        const error = await rejection(call(box, () => Promise.reject(ofAnother)))
        assert.has(error, { code: 'INVALID_ARGUMENT', taskBegan: true })
        assert.equal((error as Error).cause, ofAnother)
      }
      if (!keepsValues(fixture)) return
      const named = Object.freeze(new UnavailableError('of the naming'))
      const unnamed = box.store('s').transaction(
        () => Promise.reject(named),
        () => 1,
      )
      assert.has(await rejection(unnamed), { message: 'of the naming', taskBegan: false })
    })

    test('the loss of an inner grant is not the end of the outer task', async boxes => {
      const box = await boxes.open()
      const running = box.mutex('outer').run(() =>
        box.mutex('inner').run(
          async grant => {
            await until('the grant is lost', () => grant.signal.aborted)
            return 'of the inner task'
          },
          { lease: 60, renew: false },
        ),
      )
      assert.has(await rejection(running), {
        code: 'LOST',
        taskBegan: true,
        taskEnded: false,
        result: undefined,
        cause: { taskEnded: true, result: 'of the inner task' },
      })
    })

    test.runIf(keepsValues(fixture))('a transaction that was committed gives its result', async boxes => {
      const [box, engine] = await boxes.meddled()
      engine.meddle = (operation, carryOut) =>
        operation.type === 'release' ? Promise.reject(new UnavailableError(CUT)) : carryOut()
      const outcome = await box.store('s').transaction(['k'], transaction => {
        transaction.put('k', 1)
        return 'charged'
      })
      assert.has(outcome, { applied: true, result: 'charged' })
      engine.meddle = (_, carryOut) => carryOut()
      assert.equal((await box.store('s').get('k'))!.value, 1)
    })

    test.runIf(keepsValues(fixture))('a transaction that was lost has not ended', async boxes => {
      const [box, engine] = await boxes.meddled()
      const losing = FAULTS[1]!
      const running = box.store('s').transaction(
        ['k'],
        async transaction => {
          transaction.put('k', 1)
          engine.meddle = failingMeddle(losing)
          await until('the locks are lost', () => transaction.signal.aborted)
        },
        { lease: LOST_SOON },
      )
      assert.has(await rejection(running), { code: 'LOST', taskBegan: true, taskEnded: false })
      engine.meddle = (_, carryOut) => carryOut()
      assert.equal(await box.store('s').get('k'), undefined)
    })

    for (const group of [undefined, { most: 2, within: 10 }]) {
      const kind = group ? 'a transaction of a group' : 'a transaction'
      test.runIf(keepsValues(fixture))(
        `${kind} that could not commit says that its task began`,
        async boxes => {
          const [box, engine] = await boxes.meddled()
          const store = box.store('s', { group })
          const failing = (failure: Error): Promise<unknown> =>
            store.transaction(['k'], transaction => {
              transaction.put('k', 1)
              engine.meddle = (operation, carryOut) =>
                operation.type === 'commit' ? Promise.reject(failure) : carryOut()
            })
          for (const Failure of [UnavailableError, IndeterminateError]) {
            const failure = new Failure(CUT)
            assert.has(await rejection(failing(failure)), { code: failure.code, taskBegan: true })
            engine.meddle = (_, carryOut) => carryOut()
          }
          const round = store.transaction(['k'], async transaction => {
            await box.store('s').put('k', 2)
            transaction.put('k', 1)
          })
          assert.has(await rejection(round), { code: 'CONFLICT', taskBegan: true })
        },
      )
    }

    test.runIf(keepsValues(fixture))(
      'a transaction whose keys moved after its task began says so when it ends, however it ends',
      async boxes => {
        const box = await boxes.open()
        const store = box.store('s')
        let named = 0
        const running = store.transaction(
          async read => {
            await read('where')
            if (++named === 2) throw new UnavailableError(CUT)
            return ['k']
          },
          async transaction => {
            await store.put('where', 'elsewhere')
            transaction.put('k', 1)
          },
        )
        assert.has(await rejection(running), { code: 'UNAVAILABLE', taskBegan: true })
        assert.equal(named, 2)
      },
    )

    test.runIf(keepsValues(fixture))(
      'a loss while the keys are named is not that of the task',
      async boxes => {
        const box = await boxes.open()
        const lose = (): Promise<string> =>
          box.mutex('inner').run(
            async grant => {
              await until('the grant is lost', () => grant.signal.aborted)
              return 'k'
            },
            { lease: 60, renew: false },
          )
        const running = box.store('s').transaction(
          async () => [await lose()],
          () => 1,
        )
        const about = { code: 'LOST', taskBegan: false, taskEnded: false, result: undefined }
        assert.has(await rejection(running), about)
      },
    )

    test.runIf(hasLimits(fixture))(
      'a limiter gives what its task gave when the share can not be given back',
      async boxes => {
        const [box, engine] = await boxes.meddled()
        const limiter = box.limiter('api', { limit: 10, per: '1m', concurrency: 1 })
        const given = await limiter.run(() => {
          engine.meddle = failingMeddle(FAULTS[0]!)
          return 'charged'
        })
        assert.equal(given, 'charged')
        engine.meddle = (_, carryOut) => carryOut()
      },
    )
  })
}

/** All calls that take a task. */
function callsOf(fixture: EngineFixture): ((box: Box, task: () => unknown) => Promise<unknown>)[] {
  const calls: ((box: Box, task: () => unknown) => Promise<unknown>)[] = [
    (box, task) => box.mutex('key').run(task),
    (box, task) => box.semaphore('key', { permits: 2 }).run(task),
    (box, task) => box.readWriteLock('key').read.run(task),
    (box, task) => box.readWriteLock('key').write.run(task),
  ]
  if (hasLimits(fixture)) {
    calls.push((box, task) => box.limiter('calls', { limit: 100, per: '1m' }).run(task))
  }
  if (keepsValues(fixture)) {
    calls.push(
      (box, task) => box.election('e').lead(task),
      (box, task) => box.store('s').transaction(['k'], task),
      (box, task) => box.store('s', { group: { most: 2, within: 10 } }).transaction(['k'], task),
    )
  }
  return calls
}

function leaseOf({ loses }: Fault): number {
  return loses ? LOST_SOON : KEPT
}

/** A task that goes on until its grant is lost, where the fault loses it. */
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

/** Lets the engine fail once so many tasks have begun: a grant that is lost before its task begins has another error. */
function failingOnce(engine: MeddledEngine, fault: Fault, tasks: number): () => Promise<void> {
  let begun = 0
  return async () => {
    if (++begun === tasks) engine.meddle = failingMeddle(fault)
    await until('all tasks have begun', () => begun === tasks)
  }
}

function failingMeddle({ fails }: Fault): Meddle {
  return (operation, carryOut) =>
    (fails as readonly string[]).includes(operation.type)
      ? Promise.reject(new UnavailableError(CUT))
      : carryOut()
}

/** What a promise was rejected with. */
async function rejection(promise: Promise<unknown>): Promise<unknown> {
  const [outcome] = await Promise.allSettled([promise])
  if (outcome.status === 'rejected') return outcome.reason
  throw new Error(`no error, but ${String(outcome.value)}`)
}
