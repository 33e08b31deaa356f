import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { open, TimedOutError } from '../../../src/index.js'

afterEach(() => void vi.useRealTimers())

const folder = mkdtempSync(join(tmpdir(), 'signalbox-real-time-'))
afterEach(() => rmSync(folder, { recursive: true, force: true }))

test.each(['memory:real time', `file:${folder}`])('%s uses the real time under fake timers', async url => {
  vi.useFakeTimers({
    toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate', 'queueMicrotask', 'hrtime'],
  })
  await using box = await open(url)
  await using other = await open(url)
  await box.mutex('key').acquire()
  await expect(other.mutex('key').acquire({ wait: 100 })).rejects.toThrow(TimedOutError)
  const expiring = await box.mutex('expiring').acquire({ lease: 50, renew: false })
  await new Promise(resolve => expiring.signal.addEventListener('abort', resolve))
  const store = box.store('values', { group: { maxSize: 4, maxTime: '1s' } })
  await store.transaction(['key'], transaction => transaction.put('key', 1))
  const limiter = box.limiter('api', { limit: 1, per: 20 })
  await limiter.acquire()
  await limiter.acquire()
  expect(vi.getTimerCount()).toBe(0)
})
