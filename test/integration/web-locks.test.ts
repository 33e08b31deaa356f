import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { LostError, open, type Box } from '../../src/index.js'
import {
  lockManager,
  type Lock,
  type LockManager,
  type LockManagerSnapshot,
} from '../../src/web-locks/index.js'
import { startRedis } from '../support/servers/redis.js'

const redis = await startRedis()
const folder = mkdtempSync(join(tmpdir(), 'signalbox-web-locks-'))

afterAll(async () => {
  await redis.stop()
  rmSync(folder, { recursive: true })
})

/** A promise with the function that settles it. */
class Gate {
  readonly opened: Promise<unknown>
  open!: (value?: unknown) => void

  constructor() {
    this.opened = new Promise(resolve => (this.open = resolve))
  }
}

const abortError = expect.objectContaining({ name: 'AbortError' })
const notSupported = expect.objectContaining({ name: 'NotSupportedError' })
const never = new Promise<void>(() => undefined)
const unreached = (): never => {
  throw new Error('this callback must not run')
}

let spaces = 0
const engines: readonly (readonly [name: string, url: () => string])[] = [
  ['memory', () => `memory:web-locks-${++spaces}`],
  ['files', () => `file:${join(folder, String(++spaces))}`],
  ['Redis', () => `${redis.url}?prefix=${++spaces}:`],
]

describe.each(engines)('over %s', (_, url) => {
  let box: Box
  let other: Box
  let locks: LockManager
  /** The same locks in another process. */
  let theirs: LockManager
  /** The locks that the test still holds. */
  let gates: Gate[]

  beforeEach(async () => {
    const place = url()
    box = await open(place)
    other = await open(place)
    locks = lockManager(box)
    theirs = lockManager(other)
    gates = []
  })
  afterEach(async () => {
    for (const gate of gates) gate.open()
    await Promise.all([box.close(), other.close()])
  })

  /** Holds a lock until the test ends or opens the gate. */
  const hold = (
    manager: LockManager,
    name: string,
    options: Parameters<LockManager['request']>[1] & object = {},
  ): Gate & { released: Promise<unknown> } => {
    const gate = new Gate()
    gates.push(gate)
    const released = manager.request(name, options, () => gate.opened)
    released.catch(() => undefined)
    return Object.assign(gate, { released })
  }

  /**
   * Makes both boxes wait once. Over Redis, a box that has waited is notified of a loss. Before, it learns of a loss
   * only when it renews the lease.
   */
  const haveWaited = async (): Promise<void> => {
    for (const [one, another] of [
      [locks, theirs],
      [theirs, locks],
    ] as const) {
      const gate = hold(one, 'before')
      await one.query()
      const waiting = another.request('before', () => undefined)
      await another.query()
      gate.open()
      await waiting
    }
  }

  const modes = (list: LockManagerSnapshot['held'], name: string): string[] =>
    list.filter(each => each.name === name).map(({ mode }) => mode)

  describe('the arguments', () => {
    const call = (...given: unknown[]): Promise<unknown> =>
      Reflect.apply(locks.request as (...all: unknown[]) => Promise<unknown>, locks, given)

    test('of a wrong type are refused', async () => {
      const signals = ['text', 1.5, false, null, {}, Symbol('signal'), unreached, globalThis]
      for (const given of [
        ...[[], ['a'], ['a', {}], ['a', 'b'], ['a', null], ['a', never], ['a', unreached, 1]],
        ...[
          [Symbol('a'), unreached],
          ['a', 5, unreached],
        ],
        ...['other', null, 1, Symbol('shared')].map(mode => ['a', { mode }, unreached]),
        ...signals.map(signal => ['a', { signal }, unreached]),
      ])
        await expect(call(...given)).rejects.toBeInstanceOf(TypeError)
      expect(await call('a', { mode: 'shared' }, (lock: Lock) => lock.mode)).toBe('shared')
    })

    test('names become strings; options may be null or missing, or have other members', async () => {
      for (const options of [undefined, null, {}, { mode: undefined, signal: undefined }, { another: 1 }])
        expect(await call(7, options, (lock: Lock) => [lock.name, lock.mode])).toEqual(['7', 'exclusive'])
    })

    test('what excludes each other is not supported', async () => {
      const { signal } = new AbortController()
      for (const options of [
        { steal: true, ifAvailable: true },
        { steal: true, mode: 'shared' },
        { steal: true, signal },
        { ifAvailable: true, signal },
      ])
        await expect(call('a', options, unreached)).rejects.toEqual(notSupported)
    })

    test('a name that begins with a hyphen is reserved, also where the signal has aborted', async () => {
      for (const name of ['-', '-a']) await expect(call(name, unreached)).rejects.toEqual(notSupported)
      const signal = AbortSignal.abort()
      await expect(call('-', { signal }, unreached)).rejects.toEqual(notSupported)
      expect(await call('a-', (lock: Lock) => lock.name)).toBe('a-')
    })

    test('every other name is as good as another', async () => {
      const names = [
        '',
        ' ',
        'a\0b',
        '\ud800',
        '\udc00',
        '\udc00\ud800',
        '\uffff',
        '%',
        '%d800',
        '%0000',
        '{a}b',
      ]
      const held = names.map(name => hold(locks, name))
      expect((await locks.query()).held.map(({ name }) => name).sort()).toEqual([...names].sort())
      for (const name of names) {
        const found = await theirs.request(name, { ifAvailable: true }, lock => lock)
        expect(found).toBe(null)
      }
      for (const gate of held) gate.open()
      await Promise.all(held.map(({ released }) => released))
      for (const name of names) expect(await theirs.request(name, lock => lock.name)).toBe(name)
    })

    test('a name that makes too long a key is not supported', async () => {
      expect(await locks.request('x'.repeat(1015), lock => lock.name)).toHaveLength(1015)
      await expect(locks.request('x'.repeat(1016), unreached)).rejects.toEqual(notSupported)
    })
  })

  describe('the callback', () => {
    test('gives the promise what it throws, as it is', async () => {
      let isCalled = false
      const thrown = { then: () => (isCalled = true) }
      for (const ifAvailable of [false, true]) {
        if (ifAvailable) hold(theirs, 'a')
        await expect(
          locks.request('a', { ifAvailable }, () => {
            throw thrown
          }),
        ).rejects.toBe(thrown)
        await expect(locks.request('a', { ifAvailable }, () => Promise.reject(thrown as never))).rejects.toBe(
          thrown,
        )
      }
      expect(isCalled).toBe(false)
    })
  })

  describe('a signal', () => {
    test('that has aborted ends the request with its reason', async () => {
      const reason = { not: 'an error' }
      await expect(locks.request('a', { signal: AbortSignal.abort(reason) }, unreached)).rejects.toBe(reason)
      await expect(locks.request('a', { signal: AbortSignal.abort() }, unreached)).rejects.toEqual(abortError)
      expect(await locks.query()).toEqual({ held: [], pending: [] })
    })

    test('ends a request that waits, and those behind go on', async () => {
      hold(theirs, 'a', { mode: 'shared' })
      await theirs.query()
      const controller = new AbortController()
      const waiting = locks.request('a', { signal: controller.signal }, unreached)
      const behind = locks.request('a', { mode: 'shared' }, () => 'granted')
      const state = await locks.query()
      expect([modes(state.held, 'a'), modes(state.pending, 'a')]).toEqual([
        ['shared'],
        ['exclusive', 'shared'],
      ])
      controller.abort('no more')
      await expect(waiting).rejects.toBe('no more')
      expect(await behind).toBe('granted')
    })

    test('may serve many requests at once', async () => {
      const warnings: Error[] = []
      const warned = (warning: Error): void => void warnings.push(warning)
      process.on('warning', warned)
      const { signal } = new AbortController()
      const all = Array.from({ length: 20 }, () => locks.request('a', { signal }, () => undefined))
      await Promise.all(all)
      await sleep(1)
      process.off('warning', warned)
      expect(warnings).toEqual([])
    })
  })

  describe('query', () => {
    test('returns two empty lists where there is nothing', async () => {
      await box.mutex('other').run(async () => {
        expect(await locks.query()).toEqual({ held: [], pending: [] })
      })
    })

    test('lists holders and requests of all boxes, with their sessions, in order', async () => {
      hold(locks, 'a')
      await locks.query()
      hold(theirs, 'a', { mode: 'shared' })
      await theirs.query()
      hold(locks, 'a')
      hold(locks, 'b', { mode: 'shared' })
      await locks.query()
      const { held, pending } = await theirs.query()
      const [ours, its] = [box.session, other.session]
      expect(held.sort((one, two) => (one.name < two.name ? -1 : 1))).toEqual([
        { name: 'a', mode: 'exclusive', clientId: ours },
        { name: 'b', mode: 'shared', clientId: ours },
      ])
      expect(pending).toEqual([
        { name: 'a', mode: 'shared', clientId: its },
        { name: 'a', mode: 'exclusive', clientId: ours },
      ])
    })
  })

  describe('a lock that is lost', () => {
    const forceRelease = async (): Promise<void> => {
      for await (const { key, holders } of box.inspect('web-lock:a', { exact: true }))
        await box.forceRelease(key, holders[0]!.token!)
    }

    test.each([
      ['a thief', () => locks.request('a', { steal: true }, () => undefined)],
      ['an operator', forceRelease],
    ] as const)('to %s rejects the promise at once, and aborts the signal of the lock', async (_, take) => {
      await haveWaited()
      const held = new Gate()
      const request = theirs.request('a', lock => {
        held.open(lock)
        return never
      })
      const rejected = expect(request).rejects.toEqual(abortError)
      const lock = (await held.opened) as Lock
      await take()
      await rejected
      expect(lock.signal.reason).toBeInstanceOf(LostError)
      await expect(request).rejects.toHaveProperty('cause', lock.signal.reason)
    })

    test('goes with its box, whose waiting requests are refused', async () => {
      const held = hold(locks, 'a')
      const waiting = expect(locks.request('a', unreached)).rejects.toMatchObject({ code: 'CLOSED' })
      await locks.query()
      await box.close()
      await waiting
      await expect(held.released).rejects.toEqual(abortError)
      expect(await theirs.request('a', lock => lock.name)).toBe('a')
      await expect(locks.request('a', unreached)).rejects.toMatchObject({ code: 'CLOSED' })
      await expect(locks.query()).rejects.toMatchObject({ code: 'CLOSED' })
    })
  })

  test('excludes the other locks on its key', async () => {
    await locks.request('a', async () => {
      expect(await other.mutex('web-lock:a').tryAcquire()).toBeUndefined()
    })
    await using grant = await other.mutex('web-lock:a').acquire()
    expect(await locks.request('a', { ifAvailable: true }, lock => lock)).toBe(null)
    grant.assertHeld()
  })
})
