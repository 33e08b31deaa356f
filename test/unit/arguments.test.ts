import { describe, expect } from 'vitest'
import { rejection } from '../../packages/conformance/src/assert.js'
import { locks } from '../../packages/conformance/src/time.js'
import { InvalidArgumentError, open } from '../../src/index.js'
import { test } from '../support/memory-boxes.js'

type Method =
  | 'acquire'
  | 'campaign'
  | 'close'
  | 'compareAndSet'
  | 'delete'
  | 'election'
  | 'forceRelease'
  | 'get'
  | 'lead'
  | 'lock'
  | 'mutex'
  | 'next'
  | 'observe'
  | 'put'
  | 'read'
  | 'readWriteLock'
  | 'revoke'
  | 'run'
  | 'semaphore'
  | 'store'
  | 'transaction'
  | 'tryAcquire'
  | 'watch'

/** A box as plain JavaScript sees it, without types that restrict arguments. */
type AnyBox = ((...said: unknown[]) => AnyBox) & { readonly [method in Method]: AnyBox }

/** Name of the mistake, a call that makes it, and the required parts of the message. */
type Case = readonly [name: string, wrong: (box: AnyBox) => unknown, ...told: (string | RegExp)[]]

const nothing = (): undefined => undefined

const keys: Case[] = [
  ['no key', box => box.mutex().acquire(), 'key'],
  ['keys in an array', box => box.mutex(['a', 'b']).acquire(), 'key', 'an array'],
  ['a key that was not awaited', box => box.mutex(Promise.resolve('a')).acquire(), 'key', 'a promise'],
  ['a key with NUL', box => box.mutex('a\0b').acquire(), 'key', 'NUL'],
  ['a key of half a character', box => box.mutex('a\ud83d').acquire(), 'key', 'well-formed'],
  ['a key that is too long', box => box.mutex('x'.repeat(1025)).acquire(), 'key', '1024', 'xxx'],
]

const claims: Case[] = [
  ['a key for a claim', box => box.lock('a').acquire(), 'claim', '"a"'],
  [
    'a claim of no known mode',
    box => box.lock({ key: 'a', mode: 'write' }).acquire(),
    'mode',
    '"write"',
    'shared',
  ],
  [
    'a key in two modes',
    box => box.lock({ key: 'a', mode: 'shared' }, { key: 'a', mode: 'exclusive' }).acquire(),
    '"a"',
    'two different claims',
  ],
]

const permits: Case[] = [
  ['a semaphore with a number', box => box.semaphore('a', 4).acquire(), 'options', '4'],
  ['a semaphore without permits', box => box.semaphore('a', { max: 0 }).acquire(), 'max', '0'],
  ['an endless semaphore', box => box.semaphore('a', { max: Infinity }).acquire(), 'max', 'Infinity'],
  ['permits of a semaphore', box => box.semaphore('a', { permits: 1, max: 2 }).acquire(), '"permits"', 'max'],
  ['more than there are', box => box.semaphore('a', { max: 4 }).acquire({ permits: 5 }), 'permits', '4', '5'],
]

const options: Case[] = [
  ['an unknown option', box => box.mutex('a').acquire({ timeout: 5 }), '"timeout"', 'wait'],
  ['a wait of a try', box => box.mutex('a').tryAcquire({ wait: 5 }), '"wait"', 'lease'],
  ['a negative wait', box => box.mutex('a').acquire({ wait: -1 }), 'wait', '-1', '0 ms'],
  ['a lease that is too short', box => box.mutex('a').tryAcquire({ lease: 19 }), 'lease', '20 ms', '19'],
  [
    'a lease that is too long',
    box => box.mutex('a').acquire({ lease: '2d' }),
    'lease',
    '86400000 ms',
    '"2d"',
  ],
  [
    'a controller for a signal',
    box => box.mutex('a').acquire({ signal: new AbortController() }),
    'signal',
    'AbortSignal',
  ],
  ['a label that is too long', box => box.mutex('a').acquire({ label: 'x'.repeat(201) }), 'label', '200'],
  ['no task', box => box.mutex('a').run(), 'run', 'function', 'undefined'],
]

const state: Case[] = [
  ['a store name with a slash', box => box.store('a/b'), 'store', '"a/b"', '/'],
  ['an unknown store option', box => box.store('s', { batch: 5 }), '"batch"', 'group'],
  ['a group of one', box => box.store('s', { group: { maxSize: 1, maxTime: 5 } }), 'group.maxSize', '2', '1'],
  [
    'a group that is too great',
    box => box.store('s', { group: { maxSize: 1025, maxTime: 5 } }),
    'group.maxSize',
    '1024',
  ],
  [
    'a group with an unknown option',
    box => box.store('s', { group: { maxSize: 4, maxTime: 5, max: 4 } }),
    '"max"',
  ],
  ['nothing to put', box => box.store('s').put('k'), '"k"', 'JSON', 'undefined'],
  ['a bigint to put', box => box.store('s').put('k', 5n), '"k"', 'JSON', '5n'],
  ['a circle to put', box => box.store('s').put('k', circle()), '"k"', 'JSON', 'an object'],
  ['a transaction of no key', box => box.store('s').transaction([], nothing), 'key', 'an array'],
  ['a transaction without function', box => box.store('s').transaction(['k']), 'function', 'undefined'],
  [
    'a transaction that is not renewed',
    box => box.store('s').transaction(['k'], nothing, { renew: false }),
    '"renew"',
  ],
  [
    'the same id twice',
    box =>
      box.store('s').transaction(['k'], nothing, {
        id: [
          { id: 'a', key: 'k' },
          { id: 'a', key: 'k' },
        ],
      }),
    'id',
    'an array',
  ],
  ['a text among parts', box => box.store('s').transaction(['k'], nothing, { id: ['a'] }), 'id', 'an array'],
]

const administration: Case[] = [
  ['an unknown close option', box => box.close({ force: true }), '"force"', 'drain'],
]

describe('arguments that are refused', () => {
  for (const [name, wrong, ...told] of [
    ...keys,
    ...claims,
    ...permits,
    ...options,
    ...state,
    ...administration,
  ]) {
    test(name, async ({ boxes }) => {
      const [box, engine] = await boxes.withFaults()
      const before = engine.operations.length
      const error = await rejection(Promise.resolve().then(() => wrong(box as unknown as AnyBox)))
      expect(error).toBeInstanceOf(InvalidArgumentError)
      expect(error).toMatchObject({ code: 'INVALID_ARGUMENT' })
      for (const part of told) expect((error as Error).message).toMatch(part)
      expect(engine.operations.length).toBe(before)
      // The box must still work.
      expect(await box.mutex('a').tryAcquire()).toBeDefined()
    })
  }

  for (const [what, url, options, ...told] of [
    ['no URL', undefined, undefined, 'URL', 'undefined'],
    ['an object for a URL', { url: 'memory:' }, undefined, 'URL', 'an object'],
    ['a path for a URL', './folder', undefined, 'URL', '"./folder"', 'file:'],
    ['an unknown engine', 'mongodb://localhost', undefined, 'URL', 'mongodb', 'memory:'],
    ['a parameter for memory', 'memory:?a=1', undefined, 'memory: URL', '"memory:?a=1"'],
    ['an unknown box option', 'memory:', { name: 'a' }, '"name"', 'label'],
  ] as const) {
    test(`opening with ${what}`, async () => {
      const opening = open(url as string, options as never)
      await expect(opening).rejects.toThrow(InvalidArgumentError)
      for (const part of told) await expect(opening).rejects.toThrow(part)
    })
  }

  test('an undefined option takes its default', async ({ boxes }) => {
    const box = await boxes.open({ label: undefined, detectDeadlocks: undefined })
    const options = {
      wait: undefined,
      lease: undefined,
      signal: undefined,
      label: undefined,
      renew: undefined,
      reentrant: undefined,
      ownRequest: undefined,
      steal: undefined,
    }
    await (await box.mutex('a').acquire(options)).release()
    await (await box.semaphore('a', { max: 1 }).acquire({ ...options, permits: undefined })).release()
    const { wait, lease, signal, label, ...locks } = options
    expect(Object.keys(locks)).toEqual(['renew', 'reentrant', 'ownRequest', 'steal'])
    const others = { wait, lease, signal, label }
    const store = box.store('s', { group: undefined })
    const defaults = { ...others, id: undefined, retention: undefined, attempts: undefined }
    await store.transaction(['k'], nothing, defaults)
    await box.close({ drain: undefined })
  })

  test('changing an argument after the call has no effect', async ({ boxes }) => {
    const box = await boxes.open()
    const claim: { key: string; mode: 'exclusive' | 'shared' } = { key: 'a', mode: 'exclusive' }
    const lock = box.lock(claim)
    claim.key = 'b'
    claim.mode = 'shared'
    const grant = await lock.acquire()
    expect(grant.keys).toStrictEqual(['a'])
    expect((await locks(box))[0]!.holders[0]!.claim).toStrictEqual({ key: 'a', mode: 'exclusive' })
    await grant.release()
  })
})

function circle(): object {
  const round: Record<string, unknown> = {}
  round.again = round
  return round
}
