import { describe, expect } from 'vitest'
import { LAPSING, nothingHeld, pause, queued, until } from '../../packages/conformance/src/time.js'
import {
  AbortedError,
  LostError,
  UnavailableError,
  type GrantedEvent,
  type LockEvent,
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
