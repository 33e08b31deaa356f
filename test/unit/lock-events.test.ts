import { describe, expect } from 'vitest'
import {
  LAPSING,
  NOTIFIED_BY_RENEWAL,
  locks,
  nothingHeld,
  pause,
  queued,
  until,
} from '../../packages/conformance/src/time.js'
import {
  AbortedError,
  LostError,
  TimedOutError,
  UnavailableError,
  type GrantedEvent,
  type LockEvent,
  type LockRefusedEvent,
  type LostEvent,
  type ReleasedEvent,
} from '../../src/index.js'
import { test } from '../support/memory-boxes.js'

describe.concurrent('the diagnostics channels of locks', () => {
  test('a lock that waits is published as requested, granted and released', async ({ boxes }) => {
    const [one, other] = await boxes.pair()
    const requested = boxes.events<LockEvent>('lock:requested', other)
    const granted = boxes.events<GrantedEvent>('lock:granted', other)
    const released = boxes.events<ReleasedEvent>('lock:released', other)
    const held = await one.mutex('b', 'a').acquire()
    const asked = other.mutex('a', 'b').acquire()
    await queued(one, 'a', 1)
    await pause(40)
    expect(requested).toHaveLength(1)
    expect(granted).toHaveLength(0)
    await held.release()
    const grant = await asked
    await pause(40)
    await grant.release()
    const about = {
      session: other.session,
      keys: ['a', 'b'],
      modes: ['exclusive', 'exclusive'],
      engine: requested[0]!.engine,
    }
    expect(requested).toStrictEqual([about])
    expect(granted).toStrictEqual([
      { ...about, token: grant.token, waited: granted[0]!.waited, request: about },
    ])
    expect(granted[0]!.request).toBe(requested[0])
    expect(released).toStrictEqual([{ ...about, token: grant.token, held: released[0]!.held }])
    expect(granted[0]!.waited).toBeGreaterThanOrEqual(39)
    expect(granted[0]!.waited).toBeLessThan(10_000)
    expect(released[0]!.held).toBeGreaterThanOrEqual(39)
    expect(released[0]!.held).toBeLessThan(10_000)
    expect(about.engine.length).toBeGreaterThan(3)
  })

  test('every grant and every release is published once, also of local turns and by every verb', async ({
    boxes,
  }) => {
    const box = await boxes.open()
    const granted = boxes.events<GrantedEvent>('lock:granted', box)
    const released = boxes.events<ReleasedEvent>('lock:released', box)
    const tokens: bigint[] = []
    await Promise.all(
      Array.from({ length: 20 }, () => box.mutex('key').run(grant => void tokens.push(grant.token))),
    )
    const tried = await box.mutex('key').tryAcquire()
    tokens.push(tried!.token)
    await tried!.release()
    await tried!.release()
    await box.store('s').transaction(['k'], transaction => void tokens.push(transaction.token))
    expect(granted.map(({ token }) => token)).toStrictEqual(tokens)
    expect(released.map(({ token }) => token)).toStrictEqual(tokens)
  })

  test('a refused wait is published with its length and its error', async ({ boxes }) => {
    const [one, other] = await boxes.pair()
    const timedOut = boxes.events<LockRefusedEvent>('lock:refused', other)
    const granted = boxes.events<LockEvent>('lock:granted', other)
    await one.mutex('key').acquire()
    await expect(other.mutex('key').acquire({ wait: 60 })).rejects.toThrow(TimedOutError)
    expect(timedOut).toStrictEqual([
      {
        session: other.session,
        keys: ['key'],
        modes: ['exclusive'],
        engine: timedOut[0]!.engine,
        waited: timedOut[0]!.waited,
        error: timedOut[0]!.error,
        request: {
          session: other.session,
          keys: ['key'],
          modes: ['exclusive'],
          engine: timedOut[0]!.engine,
        },
      },
    ])
    expect(timedOut[0]!.error).toBeInstanceOf(TimedOutError)
    expect(timedOut[0]!.waited).toBeGreaterThanOrEqual(59)
    expect(granted).toStrictEqual([])
  })

  test('every way to lose a grant is published once, with its token', async ({ boxes }) => {
    const [one, other] = await boxes.pair()
    const lost = boxes.events<LostEvent>('lock:lost', one)
    const lapsing = await one.mutex('lapsing').acquire({ lease: LAPSING, renew: false })
    await until('it is lost', () => lost.length === 1)
    await lapsing.release().catch(() => undefined)
    expect(lost.map(({ keys }) => keys)).toStrictEqual([['lapsing']])
    const taken = await one.mutex('taken').acquire({ lease: NOTIFIED_BY_RENEWAL })
    const told = new Promise(resolve => taken.signal.addEventListener('abort', resolve))
    await other.forceRelease('taken', (await locks(other, 'taken'))[0]!.holders[0]!.token!)
    await told
    await taken.release().catch(() => undefined)
    expect(lost.map(({ keys }) => keys)).toStrictEqual([['lapsing'], ['taken']])
    const open = await one.mutex('open').acquire()
    await one.close()
    expect(lost.map(({ keys }) => keys)).toStrictEqual([['lapsing'], ['taken'], ['open']])
    expect(lost.map(({ token }) => token)).toStrictEqual([lapsing, taken, open].map(({ token }) => token))
    for (const { error } of lost) expect(error).toBeInstanceOf(LostError)
  })

  test('a release is published once, after it is answered', async ({ boxes }) => {
    const [box, engine] = await boxes.withFaults()
    const ends = ['released', 'release-failed', 'lost'].map(end => boxes.events(`lock:${end}`, box))
    const told = (): number[] => ends.map(({ length }) => length)
    const released = await box.mutex('key').acquire()
    let answer: (() => void) | undefined
    engine.intercept = async (operation, execute) => {
      const outcome = await execute()
      if (operation.type === 'release') await new Promise<void>(resolve => (answer = resolve))
      return outcome
    }
    const releasing = released.release()
    await until('the release was carried out', () => answer !== undefined)
    expect(told()).toStrictEqual([0, 0, 0])
    answer!()
    await releasing
    expect(told()).toStrictEqual([1, 0, 0])
    engine.restore()
    const failing = await box.mutex('key').acquire()
    engine.fail(['release'], new UnavailableError('the line is cut'))
    await expect(failing.release()).rejects.toThrow(UnavailableError)
    expect(told()).toStrictEqual([1, 1, 0])
    engine.restore()
    const lapsing = await box.mutex('lapsing').acquire({ lease: LAPSING, renew: false })
    await until('it is lost', () => ends[2]!.length === 1)
    await expect(lapsing.release()).rejects.toThrow(LostError)
    expect(told()).toStrictEqual([1, 1, 1])
    expect(ends.flat()).toMatchObject([released, failing, lapsing].map(({ token }) => ({ token })))
  })

  test('a lease that was extended for a caller that gave up is not published', async ({ boxes }) => {
    const [box, engine] = await boxes.withFaults()
    const granted = boxes.events<GrantedEvent>('lock:granted', box)
    const released = boxes.events<ReleasedEvent>('lock:released', box)
    const grant = await box.mutex('key').acquire({ lease: 5000 })
    const controller = new AbortController()
    const waiting = box.mutex('key').acquire({ lease: 6000, signal: controller.signal })
    engine.intercept = async (operation, execute) => {
      const outcome = await execute()
      if (operation.type === 'extendOrYield') controller.abort()
      return outcome
    }
    await grant.release()
    await expect(waiting).rejects.toThrow(AbortedError)
    await nothingHeld(box)
    expect(engine.count('extendOrYield')).toBe(1)
    expect(granted.map(({ token }) => token)).toStrictEqual([grant.token])
    expect(released.map(({ token }) => token)).toStrictEqual([grant.token])
  })
})
