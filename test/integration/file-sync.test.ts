import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { IndeterminateError } from '../../src/base/errors.js'
import { pause, soFar, until } from '../../packages/conformance/src/time.js'
import { place } from '../support/file/places.js'

const { fdatasync } = fs

/** The disk: counts syncs, and completes them when the test allows. */
const disk = {
  syncs: 0,
  /** Whether syncs complete immediately. */
  quick: true,
  waiting: [] as (() => void)[],
  failure: undefined as Error | undefined,
  /** Completes the current sync. */
  answer(): void {
    for (const answer of disk.waiting.splice(0)) answer()
  },
}

beforeEach(() => {
  Object.assign(disk, { syncs: 0, quick: true, waiting: [], failure: undefined })
  const counted = (descriptor: number, done: fs.NoParamCallback): void => {
    disk.syncs++
    const answer = (): void => (disk.failure ? done(disk.failure) : fdatasync(descriptor, done))
    if (disk.quick) answer()
    else disk.waiting.push(answer)
  }
  fs.fdatasync = Object.assign(counted, { __promisify__: fdatasync.__promisify__ })
  syncBuiltinESMExports()
})

afterEach(() => {
  disk.quick = true
  disk.answer()
  fs.fdatasync = fdatasync
  syncBuiltinESMExports()
})

describe('the disk is synced', () => {
  test('by no lock operation, and by no read', async () => {
    const box = await place().box()
    const before = disk.syncs
    for (let count = 0; count < 50; count++) {
      await box.mutex('a', 'b').run(() => box.semaphore('c', { max: 2 }).run(() => undefined))
      await box.store('s').get('key')
    }
    expect(disk.syncs).toBe(before)
  })

  test('once for a commit, and the commit waits for it', async () => {
    const box = await place().box()
    const store = box.store('s')
    const before = disk.syncs
    for (let count = 1; count <= 10; count++) {
      await store.put('key', count)
      expect(disk.syncs).toBe(before + count)
    }
    disk.quick = false
    const put = store.put('key', 'new')
    await until('it is asked for', () => disk.waiting.length > 0)
    await pause(30)
    expect(await soFar(put)).toBe('pending')
    // The value is committed, so others see it. Only a power failure could still lose it.
    expect(await store.get('key')).toMatchObject({ value: 'new' })
    await box.mutex('other').run(() => undefined)
    disk.answer()
    await put
  })

  test('once for all commits that come while it is busy', async () => {
    const here = place()
    const [box, other] = [await here.box(), await here.box()]
    const store = box.store('s')
    const before = disk.syncs
    disk.quick = false
    const first = store.put('first', 1)
    await until('the first is on its way', () => disk.waiting.length === 1)
    const puts = []
    for (let count = 0; count < 40; count++) {
      puts.push(
        store.put(`${count}`, count),
        store.transaction(['sum'], each => each.put('sum', count)),
      )
      await new Promise(setImmediate)
    }
    const seen = other.store('s')
    await until('all are committed', async () => {
      const [put, sum] = [await seen.get('39'), await seen.get('sum')]
      return put !== undefined && sum?.value === 39
    })
    expect(disk.syncs).toBe(before + 1)
    expect(await soFar(first)).toBe('pending')
    disk.answer()
    await first
    await until('the next has begun', () => disk.waiting.length === 1)
    expect(await soFar(Promise.race(puts))).toBe('pending')
    disk.answer()
    await Promise.all(puts)
    expect(disk.syncs).toBe(before + 2)
  })

  test('by nothing at all where commits need not be durable', async () => {
    const here = place()
    const box = await here.box('?durable=false')
    const before = disk.syncs
    disk.quick = false
    for (let count = 0; count < 20; count++) await box.store('s').put('key', count)
    expect(disk.syncs).toBe(before)
  })
})

test('a disk that fails makes commits uncertain, from then on until the box is reopened', async () => {
  const here = place()
  const box = await here.box()
  const store = box.store('s')
  disk.failure = Object.assign(new Error('input/output error'), { code: 'EIO' })
  await expect(store.put('key', 'one')).rejects.toThrow(IndeterminateError)
  disk.failure = undefined
  // The system reports a lost write only once, so a later successful sync does not mean that nothing was lost.
  await expect(store.put('key', 'two')).rejects.toThrow(IndeterminateError)
  await box.mutex('key').run(() => undefined)
  // A box that is opened now has its own files.
  const again = (await here.box()).store('s')
  await again.put('other', 'one')
  await box.close()
  expect(['one', 'two']).toContain((await again.get('key'))?.value)
  await again.put('key', 'three')
})
