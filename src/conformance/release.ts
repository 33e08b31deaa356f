import { describe } from './checks.js'
import { expect } from './expect.js'
import { IndeterminateError, LostError } from '../errors.js'
import { testOn } from './boxes.js'
import type { EngineFixture } from './fixture.js'
import { locks, pause, queued, TOLD_BY_RENEWAL, until } from './time.js'

/** P7: releasing, renewing or retrying a release never touches anybody else's grant. */
export function release(fixture: EngineFixture): void {
  describe('P7 release is conditional', () => {
    const test = testOn(fixture)

    test('releasing a lost grant tells of the loss and leaves the successor alone', async boxes => {
      const [one, other, third] = await boxes.several(3)
      const lost = await one!.mutex('key').acquire({ lease: 60, renew: false })
      const next = await other!.mutex('key').acquire()
      await expect(lost.release()).rejects.toThrow(LostError)
      next.assertHeld()
      expect(await third!.mutex('key').tryAcquire()).toBeUndefined()
      expect(await one!.mutex('key').tryAcquire()).toBeUndefined()
      await next.release()
    })

    test('a second release does nothing, also when somebody else holds it by then', async boxes => {
      const [one, other] = await boxes.pair()
      const first = await one.mutex('key').acquire()
      await first.release()
      await first.release()
      const next = await other.mutex('key').acquire()
      await first.release()
      await first[Symbol.asyncDispose]()
      next.assertHeld()
      expect(await one.mutex('key').tryAcquire()).toBeUndefined()
    })

    test('a second release does not end the turn of another caller of the same box', async boxes => {
      const [one, other] = await boxes.pair()
      const first = await one.mutex('key').acquire()
      const waiting = one.mutex('key').acquire()
      await first.release()
      const next = await waiting
      await first.release()
      next.assertHeld()
      expect(await other.mutex('key').tryAcquire()).toBeUndefined()
      expect(() => first.assertHeld()).toThrow(LostError)
      expect(first.expiresIn()).toBe(0)
      await next.release()
    })

    test('a released grant proves nothing, and its signal does not change', async boxes => {
      const box = await boxes.open()
      const grant = await box.mutex('key').acquire()
      const { signal } = grant
      await grant.release()
      expect(() => grant.assertHeld()).toThrow(LostError)
      expect(grant.expiresIn()).toBe(0)
      expect(signal.aborted).toBe(false)
      await expect(box.readWriteLock('key').write.acquire().then(grantAndDowngrade)).rejects.toThrow(
        LostError,
      )
    })

    test('a lost grant is not brought back by its own renewal', async boxes => {
      const other = await boxes.open()
      const [box, engine] = await boxes.meddled()
      const grant = await box.mutex('key').acquire({ lease: 600 })
      let sent: (() => Promise<unknown>) | undefined
      engine.meddle = (operation, carryOut) => {
        if (operation.type !== 'renew') return carryOut()
        sent ??= carryOut
        return new Promise(() => undefined)
      }
      await until('a renewal is under way', () => sent !== undefined)
      const next = await other.mutex('key').acquire()
      expect(await sent!()).toBe(false)
      expect(() => grant.assertHeld()).toThrow(LostError)
      next.assertHeld()
      await pause(50)
      expect((await locks(other))[0]!.holders).toHaveLength(1)
    })

    test('a release whose answer was lost is tried again without touching the successor', async boxes => {
      const other = await boxes.open()
      const [box, engine] = await boxes.meddled()
      const grant = await box.mutex('key').acquire()
      const asked = other.mutex('key').acquire()
      await queued(other, 'key', 1)
      engine.meddle = async (operation, carryOut) => {
        const outcome = await carryOut()
        if (operation.type === 'release' && engine.count('release') === 1) {
          throw new IndeterminateError('the answer was lost')
        }
        return outcome
      }
      await expect(grant.release()).rejects.toThrow(IndeterminateError)
      const next = await asked
      await until('it was tried again', () => engine.count('release') === 2)
      await pause(20)
      next.assertHeld()
      expect(await box.mutex('key').tryAcquire()).toBeUndefined()
      await next.release()
    })

    test('a release that did not reach the engine is tried again', async boxes => {
      const other = await boxes.open()
      const [box, engine] = await boxes.meddled()
      const grant = await box.mutex('key').acquire()
      engine.meddle = async (operation, carryOut) => {
        if (operation.type === 'release' && engine.count('release') === 1) {
          throw new IndeterminateError('it may have been applied')
        }
        return carryOut()
      }
      await expect(grant.release()).rejects.toThrow(IndeterminateError)
      await (await other.mutex('key').acquire({ wait: 5000 })).release()
    })

    test('an operator can take a grant away by its token', async boxes => {
      const [one, other] = await boxes.pair()
      const grant = await one.mutex('key').acquire({ lease: TOLD_BY_RENEWAL })
      const told = new Promise(resolve => grant.signal.addEventListener('abort', resolve))
      const waiting = other.mutex('key').acquire()
      await queued(other, 'key', 1)
      expect(await other.forceRelease('key', grant.token)).toBe(true)
      const next = await waiting
      await told
      expect(() => grant.assertHeld()).toThrow(LostError)
      await expect(grant.release()).rejects.toThrow(LostError)
      next.assertHeld()
      await next.release()
    })

    test('the token of inspect serves an operator, too', async boxes => {
      const [one, other] = await boxes.pair()
      const grant = await one.mutex('a', 'b').acquire({ lease: TOLD_BY_RENEWAL })
      const { token } = (await locks(other, 'b'))[0]!.holders[0]!
      expect(await other.forceRelease('b', token!)).toBe(true)
      expect(await locks(other)).toEqual([])
      await until('the holder knows', () => grant.signal.aborted)
    })

    test('who waits in the box of a stuck holder gets what an operator took away', async boxes => {
      const [one, other] = await boxes.pair()
      const stuck = await one.mutex('key').acquire({ lease: TOLD_BY_RENEWAL })
      const waiting = one.mutex('key').acquire()
      expect(await other.forceRelease('key', stuck.token)).toBe(true)
      const next = await waiting
      expect(() => stuck.assertHeld()).toThrow(LostError)
      next.assertHeld()
      expect(next.token).toBeGreaterThan(stuck.token)
      await next.release()
    })

    test('a token that holds nothing takes nothing away', async boxes => {
      const [one, other] = await boxes.pair()
      const gone = await one.mutex('key').acquire()
      await gone.release()
      expect(await other.forceRelease('key', gone.token)).toBe(false)
      const grant = await one.mutex('key').acquire({ label: 'another' })
      const second = await one.mutex('second').acquire()
      expect(await other.forceRelease('key', gone.token)).toBe(false)
      expect(await other.forceRelease('key', second.token)).toBe(false)
      expect(await other.forceRelease('key', 0n)).toBe(false)
      expect(await other.forceRelease('absent', grant.token)).toBe(false)
      grant.assertHeld()
      expect(await other.mutex('key').tryAcquire()).toBeUndefined()
    })

    test('a token of an earlier task takes nothing from its successor in the same box', async boxes => {
      const box = await boxes.open()
      const first = await box.mutex('key').acquire({ lease: TOLD_BY_RENEWAL })
      const waiting = box.mutex('key').acquire({ lease: TOLD_BY_RENEWAL })
      await first.release()
      const second = await waiting
      expect(await box.forceRelease('key', first.token)).toBe(false)
      expect(await box.forceRelease('key', second.token + 7n)).toBe(false)
      second.assertHeld()
      const { token } = (await locks(box))[0]!.holders[0]!
      expect(token).toBe(second.token)
      expect(await box.forceRelease('key', token!)).toBe(true)
      await until('the holder knows', () => second.signal.aborted)
    })

    test('a grant that is released while an operator takes it away is not taken from its successor', async boxes => {
      const [box, engine] = await boxes.meddled()
      const first = await box.mutex('key').acquire()
      const waiting = box.mutex('key').acquire()
      engine.meddle = async (operation, carryOut) => {
        if (operation.type === 'forceRelease') await first.release()
        return carryOut()
      }
      expect(await box.forceRelease('key', first.token)).toBe(false)
      engine.meddle = (_, carryOut) => carryOut()
      const second = await waiting
      second.assertHeld()
      expect((await locks(box))[0]!.holders).toHaveLength(1)
      await second.release()
    })

    test('one of several readers can be taken away', async boxes => {
      const [one, other] = await boxes.pair()
      const grants = [
        await one.readWriteLock('key').read.acquire({ lease: TOLD_BY_RENEWAL }),
        await one.readWriteLock('key').read.acquire({ lease: TOLD_BY_RENEWAL }),
      ]
      expect(await other.forceRelease('key', grants[0]!.token)).toBe(true)
      await until('its holder knows', () => grants[0]!.signal.aborted)
      grants[1]!.assertHeld()
      expect((await locks(other, 'key'))[0]!.holders).toHaveLength(1)
    })

    test('run releases whatever becomes of the task, and gives what the task gave', async boxes => {
      const [one, other] = await boxes.pair()
      expect(await one.mutex('key').run(() => 'given')).toBe('given')
      const failing = one.mutex('key').run(() => {
        throw new Error('of the task')
      })
      await expect(failing).rejects.toThrow('of the task')
      await expect(one.mutex('key').run(() => Promise.reject(new Error('later')))).rejects.toThrow('later')
      expect(await other.mutex('key').tryAcquire()).toBeDefined()
    })

    test('run tells that its grant was lost, unless the task tells more', async boxes => {
      const box = await boxes.open()
      const options = { lease: 40, renew: false }
      await expect(box.mutex('a').run(() => pause(80), options)).rejects.toThrow(LostError)
      const failing = box.mutex('b').run(async () => {
        await pause(80)
        throw new Error('of the task')
      }, options)
      await expect(failing).rejects.toThrow('of the task')
    })

    test('a grant can be left to `await using`', async boxes => {
      const [one, other] = await boxes.pair()
      {
        await using grant = await one.mutex('key').acquire()
        grant.assertHeld()
        expect(await other.mutex('key').tryAcquire()).toBeUndefined()
      }
      expect(await other.mutex('key').tryAcquire()).toBeDefined()
    })

    test('downgrading twice is harmless, downgrading what was lost is told', async boxes => {
      const [one, other] = await boxes.pair()
      const { write } = one.readWriteLock('key')
      const grant = await write.acquire()
      await grant.downgrade()
      await grant.downgrade()
      expect(await other.readWriteLock('key').read.tryAcquire()).toBeDefined()
      await expect(grant.release()).resolves.toBeUndefined()
      const lapsing = await one.readWriteLock('lapsing').write.acquire({ lease: 30, renew: false })
      await pause(60)
      await expect(lapsing.downgrade()).rejects.toThrow(LostError)
    })
  })
}

async function grantAndDowngrade(grant: {
  release(): Promise<void>
  downgrade(): Promise<void>
}): Promise<void> {
  await grant.release()
  await grant.downgrade()
}
