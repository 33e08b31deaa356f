import { describe } from './checks.js'
import { assert } from './assert.js'
import { type Box, type Grant, type LockOptions, UnavailableError } from 'signalbox'
import { testOn, type Boxes } from './boxes.js'
import { CLAIM_WINDOW, WAITER_TTL, type LockRequest, type Operation } from 'signalbox/engine'
import type { EngineFixture } from './fixture.js'
import type { FaultInjectingEngine } from './fault-injecting-engine.js'
import { assertServed, handOver, locks, PASSED, pause, queued, soFar, timed, until } from './time.js'

/** A request that is compatible with the holder, behind a waiter that is not. */
interface Overtaking {
  readonly name: string
  readonly hold: (box: Box) => Promise<Grant>
  readonly block: (box: Box) => Promise<Grant>
  readonly pass: (box: Box, options?: LockOptions) => Promise<Grant>
}

const overtakings: readonly Overtaking[] = [
  {
    name: 'a reader after a reader',
    hold: box => box.readWriteLock('key').read.acquire(),
    block: box => box.readWriteLock('key').write.acquire(),
    pass: (box, options) => box.readWriteLock('key').read.acquire(options),
  },
  {
    name: 'a permit that is free',
    hold: box => box.semaphore('key', { max: 2 }).acquire(),
    block: box => box.semaphore('key', { max: 2 }).acquire({ permits: 2 }),
    pass: (box, options) => box.semaphore('key', { max: 2 }).acquire(options),
  },
  {
    name: 'a key that is not held',
    hold: box => box.mutex('key').acquire(),
    block: box => box.mutex('key', 'other').acquire(),
    pass: (box, options) => box.mutex('other').acquire(options),
  },
]

/** The lease of a request that is given up, in milliseconds. The box first repeats its cancellation for as long. */
const GIVEN_UP = 2000

/** P9: a dead or silent waiter never stalls the waiters behind it. */
export function deadWaiters(fixture: EngineFixture): void {
  const test = testOn(fixture)
  describe('P9 dead waiters', () => {
    const livesBySession = fixture.guarantees.deadHolder === 'session timeout'

    for (const { name, hold, block, pass } of overtakings) {
      test(`${name} is granted within seconds behind a silent waiter`, async boxes => {
        const holder = await boxes.open()
        const held = await hold(holder)
        const engine = await waiter(boxes, holder, 1, block)
        await engine.freeze()
        const other = await boxes.open()
        const took = await timed(() => pass(other, { wait: '15s' }))
        if (!livesBySession) assert.below(took, WAITER_TTL + PASSED - CLAIM_WINDOW)
        held.assertHeld()
      })
    }

    test('a waiter keeps its place during a short outage', async boxes => {
      const [holder, reader] = await boxes.pair()
      const held = await holder.readWriteLock('key').read.acquire()
      const [box, engine] = await boxes.withFaults()
      const writing = box.readWriteLock('key').write.acquire()
      await queued(holder, 'key', 1)
      const goOn = cut(engine)
      const reading = reader.readWriteLock('key').read.acquire()
      await queued(holder, 'key', 2)
      await pause(2000)
      assert.equal(await soFar(reading), 'pending')
      goOn()
      await held.release()
      const written = await writing
      assert.equal(await soFar(reading), 'pending')
      await written.release()
      await reading
    })

    test('a waiter keeps waiting through a short outage in which the engine has forgotten it', async boxes => {
      const holder = await boxes.open()
      const held = await holder.mutex('key').acquire()
      const [box, engine] = await boxes.withFaults()
      const waiting = box.mutex('key').acquire()
      await queued(holder, 'key', 1)
      const forgotten: LockRequest[] = []
      let refused = 0
      // The answers of a server that has lost its newest data, and of one that accepts no writes.
      engine.intercept = async (operation, execute) => {
        if (operation.type === 'checkIn') {
          forgotten.push(operation.request)
          return { state: 'gone' }
        }
        if (operation.type === 'alive') return { due: operation.requests.map(({ id }) => id), next: Infinity }
        if (operation.type !== 'enqueue') return execute()
        refused++
        throw new UnavailableError('takes no writes')
      }
      await until('its new request is refused twice', () => refused >= 2)
      assert.equal(await soFar(waiting), 'pending')
      engine.restore()
      for (const request of forgotten) await engine.submit({ type: 'cancel', request })
      await held.release()
      await (await waiting).release()
    })

    /** Lets a reader hold `key`, and opens a box that sends signs of life for a request for another key. */
    async function besideSigns(boxes: Boxes) {
      const [holder, other] = await boxes.pair()
      const held = await holder.readWriteLock('key').read.acquire({ lease: '30s' })
      await holder.mutex('other').acquire({ lease: '30s' })
      const [box, engine] = await boxes.withFaults()
      box
        .mutex('other')
        .acquire({ lease: '30s' })
        .catch(() => undefined)
      await queued(holder, 'other', 1)
      /** Asserts that another reader enters beside the first one within this time. */
      const assertAdmits = async (wait: `${number}s`) => {
        const reading = await other.readWriteLock('key').read.acquire({ wait })
        held.assertHeld()
        await reading.release()
      }
      return { holder, box, engine, assertAdmits }
    }

    test('a request whose answer was lost blocks others for seconds only, while its box lives', async boxes => {
      const { holder, box, engine, assertAdmits } = await besideSigns(boxes)
      engine.intercept = async (operation, execute) => {
        const outcome = await execute()
        return operation.type === 'enqueue' ? new Promise(() => undefined) : outcome
      }
      const writing = box.readWriteLock('key').write.acquire({ lease: '30s' })
      writing.catch(() => undefined)
      await queued(holder, 'key', 1)
      await assertAdmits('15s')
    })

    test('a request that was given up during an outage does not come back with its box', async boxes => {
      const { holder, box, engine, assertAdmits } = await besideSigns(boxes)
      const controller = new AbortController()
      const { signal } = controller
      const writing = box.readWriteLock('key').write.acquire({ lease: GIVEN_UP, signal })
      await queued(holder, 'key', 1)
      const signs = engine.count('alive')
      if (engine.coversBySigns) await until('a sign has named it', () => engine.count('alive') > signs)
      const goOn = cut(engine)
      const failed = assert.rejects(writing)
      controller.abort()
      await failed
      await pause(GIVEN_UP + 500)
      const before = engine.count('alive')
      goOn()
      if (engine.coversBySigns) await until('the box has sent a sign', () => engine.count('alive') > before)
      await assertAdmits('8s')
    })

    test('a request for which the engine fails does not fail the others that its box waits for', async boxes => {
      const holder = await boxes.open()
      const held = await holder.mutex('key').acquire()
      await holder.mutex('bad').acquire()
      const [box, engine] = await boxes.withFaults()
      const concernsBad = (operation: Operation): boolean =>
        (operation.type === 'alive' && operation.requests.some(({ claims }) => claims[0]!.key === 'bad')) ||
        (operation.type === 'checkIn' && operation.request.claims[0]!.key === 'bad')
      engine.intercept = (operation, execute) =>
        concernsBad(operation) ? Promise.reject(new UnavailableError('cannot be read')) : execute()
      const failing = assert.rejects(box.mutex('bad').acquire({ lease: 2000 }), UnavailableError)
      const waiting = box.mutex('key').acquire({ lease: 1000 })
      await queued(holder, 'key', 1)
      await failing
      assert.equal(await soFar(waiting), 'pending')
      await held.release()
      await (await waiting).release()
    })

    test('a caller behind a holder of its own box keeps waiting through a short outage', async boxes => {
      const [box, engine] = await boxes.withFaults()
      const held = await box.mutex('key').acquire({ lease: '20s' })
      // With another lease it can't use the holder's.
      const waiting = box.mutex('key').acquire({ lease: '15s' })
      const goOn = cut(engine, new UnavailableError('out of reach'))
      await assert.rejects(held.release(), UnavailableError)
      await pause(500)
      assert.equal(await soFar(waiting), 'pending')
      goOn()
      await (await waiting).release()
    })

    // If a waiter lives as long as the engine's own session, failing operations do not cut it off.
    if (!livesBySession)
      test('waiters keep their order during an outage longer than their leases', async boxes => {
        const holder = await boxes.open()
        const held = await holder.mutex('key').acquire()
        const served: string[] = []
        const engines: FaultInjectingEngine[] = []
        const waiting: Promise<unknown>[] = []
        for (const [index, name] of ['first', 'second'].entries()) {
          engines.push(
            await waiter(boxes, holder, index + 1, box => {
              const done = box.mutex('key').run(() => void served.push(name))
              waiting.push(done)
              return done
            }),
          )
        }
        const goOn = engines.map(engine => cut(engine))
        // Until the engine counts both as silent.
        await queued(holder, 'key', 0)
        // The second waiter is back before the first.
        goOn[1]!()
        await queued(holder, 'key', 1)
        goOn[0]!()
        await queued(holder, 'key', 2)
        const isInOrder = await handOver(held, waiting)
        assertServed(served, ['first', 'second'], isInOrder)
      })

    if (!livesBySession)
      test('a waiter that a grant of several keys has passed gets none of them when it is back', async boxes => {
        const [holder, other] = await boxes.pair()
        const options = { lease: '60s' } as const
        const first = await holder.mutex('first').acquire(options)
        const held = await holder.mutex('key').acquire(options)
        let waiting: Promise<Grant> | undefined
        const engine = await waiter(boxes, holder, 1, box => (waiting = box.mutex('key').acquire(options)))
        const both = other.mutex('first', 'key').acquire(options)
        await queued(holder, 'key', 2)
        const goOn = cut(engine)
        // Until the engine counts it as silent.
        await queued(holder, 'key', 1)
        await held.release()
        await first.release()
        const passing = await both
        const before = engine.operations.length
        goOn()
        // A sign of life, a check-in, and a new request if the old one is gone.
        const isBack = async () =>
          engine.operations.length >= before + 3 || (await soFar(waiting!)) !== 'pending'
        await until('it has asked the engine again', isBack)
        assert.equal(await soFar(waiting!), 'pending')
        passing.assertHeld()
        await passing.release()
        await (await waiting!).release()
      })

    if (fixture.guarantees.scope !== 'thread')
      test('a waiter of another process keeps its place for as long as its process lives', async boxes => {
        const [holder, reader] = await boxes.pair()
        const held = await holder.readWriteLock('waited').read.acquire({ lease: '60s' })
        const child = boxes.program('holder', '30s')
        await child.printed('holding')
        await queued(holder, 'waited', 1)
        await pause(WAITER_TTL + 1500)
        assert.equal(await reader.readWriteLock('waited').read.tryAcquire(), undefined)
        held.assertHeld()
        const later = reader.mutex('waited').acquire()
        later.catch(() => undefined)
        await queued(holder, 'waited', 2)
        const begun = performance.now()
        await held.release()
        let pid: number | undefined
        await until('the next has it', async () => {
          const [report] = await locks(holder, 'waited', { exact: true })
          pid = report?.holders[0]?.pid
          return pid !== undefined
        })
        // A process that stands still for the claim window loses its turn.
        if (performance.now() - begun < CLAIM_WINDOW) assert.equal(pid, child.pid)
      })

    if (fixture.guarantees.scope !== 'thread')
      test('a released lock passes a killed waiter within seconds, also if the releasing box closes', async boxes => {
        const holder = await boxes.open()
        const held = await holder.mutex('waited').acquire()
        const child = boxes.program('holder', '30s')
        await child.printed('holding')
        await queued(holder, 'waited', 1)
        const behind = await boxes.open()
        const waiting = behind.mutex('waited').acquire({ wait: '15s' })
        await queued(holder, 'waited', 2)
        child.kill('SIGKILL')
        await child.end()
        const took = await timed(async () => {
          await held.release()
          await holder.close()
          await waiting
        })
        if (!livesBySession) assert.below(took, PASSED)
      })
  })
}

/** Makes a box wait at this place in the queue, and returns its engine. */
async function waiter(
  boxes: Boxes,
  holder: Box,
  place: number,
  ask: (box: Box) => Promise<unknown>,
): Promise<FaultInjectingEngine> {
  const [box, engine] = await boxes.withFaults()
  // Some wait until their box is closed.
  ask(box).catch(() => undefined)
  await queued(holder, 'key', place)
  return engine
}

/** Fails all operations of a box and drops its hints, until the returned function is called. */
function cut(engine: FaultInjectingEngine, error = new Error('the line is cut')): () => void {
  const { intercept, delivers } = engine
  engine.intercept = () => Promise.reject(error)
  engine.delivers = () => false
  return () => {
    engine.intercept = intercept
    engine.delivers = delivers
  }
}
