import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Box } from '../../../../src/box.js'
import { VirtualClock } from '../../../../src/base/clock.js'
import { FileEngine } from '../../../../src/engines/file/file-engine.js'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-file-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

test('a process that counts a sleep which the shared clock does not count gets permits in time', async () => {
  const shared = new VirtualClock(50_000)
  const own = new VirtualClock(50_000)
  const engine = new FileEngine('file:', { folder, durable: false }, shared, own)
  await using box = await Box.join(engine, own)
  const limiter = box.limiter('api', { limit: 1, per: '1s' })
  expect(await limiter.tryAcquire()).toBeDefined()
  own.freeze(8000)
  expect(await limiter.tryAcquire()).toBeUndefined()
  // A window, plus the time for which a permit can be used.
  for (const clock of [own, shared]) clock.freeze(1100)
  expect(await limiter.tryAcquire()).toBeDefined()
})
