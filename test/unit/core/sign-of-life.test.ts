import { expect, test } from 'vitest'
import { Box } from '../../../src/box.js'
import { VirtualClock } from '../../../src/base/clock.js'
import type { LockOptions } from '../../../src/core/lock-options.js'
import type { RequestStatus, SignOutcome } from '../../../src/engine/contract.js'
import { HEARTBEAT_INTERVAL } from '../../../src/engine/wait-times.js'
import { IndeterminateError, TimedOutError, UnavailableError } from '../../../src/base/errors.js'
import { ScriptedEngine, settle } from './scripted-engine.js'

const ALL_WAIT: SignOutcome = { due: [], next: Infinity }

const queued = (id: string): RequestStatus => ({
  state: 'queued',
  id,
  place: 1,
  checkInAfter: Infinity,
  sessionsAhead: [],
})

async function start() {
  const clock = new VirtualClock(1000)
  const engine = new ScriptedEngine(true)
  const box = await Box.join(engine, clock)
  const errors: unknown[] = []
  const granted: string[] = []
  /** Makes a caller wait for its own key. @returns the ID of its request */
  const wait = async (key: string, options?: LockOptions): Promise<string> => {
    box
      .mutex(key)
      .acquire(options)
      .then(
        () => granted.push(key),
        (error: unknown) => errors.push(error),
      )
    const { operation, answer } = engine.take('enqueue')
    answer(queued(operation.request.id))
    await settle()
    return operation.request.id
  }
  const named = (): string[] => engine.take('alive').operation.requests.map(({ id }) => id)
  const answer = async (outcome: SignOutcome): Promise<void> => {
    engine.take('alive').answer(outcome)
    await settle()
  }
  return { clock, engine, box, wait, named, answer, errors, granted }
}

test('a request that has checked in since the sign was sent does not do so again', async () => {
  const { clock, engine, wait, answer } = await start()
  const id = await wait('a')
  clock.advance(HEARTBEAT_INTERVAL)
  clock.advance(1)
  engine.listener.wake(id)
  engine.take('checkIn').answer(queued(id))
  await settle()
  await answer({ due: [id], next: Infinity })
  expect(engine.words).toBe('enqueue alive checkIn')
})

test('a sign that does not find a request waiting does not prolong its retries', async () => {
  const { clock, engine, wait, answer, errors } = await start()
  const id = await wait('a', { lease: 3000 })
  for (let sign = 1; sign <= 2; sign++) {
    clock.advance(HEARTBEAT_INTERVAL)
    await answer({ due: [id], next: Infinity })
    engine.take('checkIn').fail(new UnavailableError('out of reach'))
    await settle()
  }
  expect(errors).toMatchObject([{ code: 'UNAVAILABLE' }])
})

test('a short lease, or a short wait, brings signs forward', async () => {
  const { clock, engine, box, wait, answer } = await start()
  await wait('a')
  await wait('b', { lease: 300 })
  for (const count of [1, 2]) {
    clock.advance(200)
    expect(engine.asked.filter(({ type }) => type === 'alive')).toHaveLength(count)
    await answer(ALL_WAIT)
  }
  await box.close()
  const other = await start()
  await other.wait('a', { wait: 100 })
  // A later caller waits longer, but the entry in the queue was made for the first caller.
  const later = other.box.mutex('a').acquire()
  later.catch(() => undefined)
  other.clock.advance(100 + 670)
  expect(other.engine.words).toBe('enqueue alive')
  await other.box.close()
})

test('the next sign waits for the answer to the last one', async () => {
  const { clock, engine, wait, answer } = await start()
  await wait('a')
  clock.advance(HEARTBEAT_INTERVAL)
  await wait('b')
  clock.advance(3 * HEARTBEAT_INTERVAL)
  expect(engine.words).toBe('enqueue alive enqueue')
  await answer(ALL_WAIT)
  clock.advance(1)
  expect(engine.words).toBe('enqueue alive enqueue alive')
})

test('a failed sign is sent again, and a request checks in once its lease has passed since the last answer', async () => {
  const { clock, engine, wait, answer, errors } = await start()
  const id = await wait('a', { lease: 10_000 })
  await wait('b', { lease: 30_000 })
  clock.advance(HEARTBEAT_INTERVAL)
  await answer(ALL_WAIT)
  clock.advance(HEARTBEAT_INTERVAL)
  const answeredAt = clock.now() - HEARTBEAT_INTERVAL
  while (clock.now() < answeredAt + 10_000) {
    expect(engine.words).not.toContain('checkIn')
    engine.take('alive').fail(new UnavailableError('out of reach'))
    await settle()
    clock.advance(200)
  }
  engine.take('alive').fail(new UnavailableError('out of reach'))
  await settle()
  engine.take('checkIn', id).fail(new UnavailableError('out of reach'))
  await settle()
  expect(errors).toMatchObject([{ code: 'UNAVAILABLE' }])
  clock.advance(200)
  expect(engine.take('alive').operation.requests).toHaveLength(1)
})

test('a request that never waited is cancelled until its lease has passed', async () => {
  const { clock, engine, box } = await start()
  const lost = new IndeterminateError('out of reach')
  const failing = expect(box.mutex('a').acquire({ lease: 1000 })).rejects.toThrow(IndeterminateError)
  engine.take('enqueue').fail(lost)
  await failing
  for (let step = 0; step < 10; step++) {
    while (engine.open > 0) engine.take('cancel').fail(lost)
    await settle()
    clock.advance(200)
  }
  const asked = engine.words
  clock.advance(60_000)
  expect(engine.words).toBe(asked)
})

test('a request that was given up in an outage is cancelled as soon as the engine is back', async () => {
  const { clock, engine, wait } = await start()
  const controller = new AbortController()
  const id = await wait('a', { lease: 1000, signal: controller.signal })
  controller.abort()
  for (let second = 0; second < 100; second++) {
    while (engine.open > 0) engine.take('cancel', id).fail(new IndeterminateError('out of reach'))
    await settle()
    clock.advance(1000)
  }
  clock.advance(HEARTBEAT_INTERVAL)
  await settle()
  engine.take('cancel', id).answer(undefined)
  await settle()
  const asked = engine.words
  clock.advance(60_000)
  expect(engine.words).toBe(asked)
})

test('a request asks for the holder a second before the wait of its callers ends', async () => {
  const { clock, engine, wait, answer, errors } = await start()
  const id = await wait('a', { wait: 4000 })
  for (const _ of [1, 2]) {
    clock.advance(3000 / 2)
    if (engine.open > 0) await answer(ALL_WAIT)
  }
  const holder = { session: 's', host: 'host', pid: 1, label: 'billing', age: 0 }
  engine.take('checkIn').answer({ ...queued(id), holder } as RequestStatus)
  await settle()
  clock.advance(1001)
  await settle()
  expect(errors[0]).toBeInstanceOf(TimedOutError)
  expect((errors[0] as TimedOutError).holder).toMatchObject({ label: 'billing' })
})
