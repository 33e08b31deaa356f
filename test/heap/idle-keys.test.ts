import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { Box } from '../../src/box.js'
import { VirtualClock } from '../../src/base/clock.js'
import { limiter } from '../../src/limits/local/local-limiter.js'
import { MemoryEngine, MemorySpace } from '../../src/engines/memory/memory-engine.js'
import { pass } from '../support/passing.js'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

const KEYS = 8000
/** Maximum memory that a box keeps for its next callers and the runtime keeps for itself, in bytes. */
const MAX_KEPT = 4 * 2 ** 20

/** Returns the number of bytes that many keys leave behind after half a minute without calls. */
async function leftBy(use: (box: Box, key: string) => Promise<unknown>): Promise<number> {
  const clock = new VirtualClock()
  const box = await Box.join(new MemoryEngine('memory:', new MemorySpace(clock), clock), clock)
  const inUse = (): number => {
    collect()
    return process.memoryUsage().heapUsed
  }
  await use(box, 'first')
  const before = inUse()
  // All calls start at once, so no key is idle when the last call begins.
  await Promise.all(Array.from({ length: KEYS }, (_, index) => use(box, `key ${index}`)))
  await pass(clock, 30_000)
  const left = inUse() - before
  await box.close()
  return left
}

test('keys of a limiter are freed without a further call', async () => {
  const left = await leftBy((box, key) => box.limiter('api', { limit: 9, per: '1s' }).key(key).acquire())
  expect(left).toBeLessThan(MAX_KEPT)
}, 60_000)

test('keys of a limiter with a concurrency are freed without a further call', async () => {
  const options = { limit: 9, per: '1s', concurrency: 2 } as const
  const left = await leftBy((box, key) =>
    box
      .limiter('api', options)
      .key(key)
      .run(() => undefined),
  )
  expect(left).toBeLessThan(MAX_KEPT)
}, 60_000)

test('keys of locks are freed without a further call', async () => {
  const left = await leftBy((box, key) => box.mutex(key).run(() => Promise.resolve()))
  expect(left).toBeLessThan(MAX_KEPT)
}, 60_000)

test('tenants of a limiter, and groups, are freed when they leave, while others wait', async () => {
  const clock = new VirtualClock()
  const api = limiter({ limit: 1, per: '1h', clock })
  await api.acquire()
  void api.acquire(1, { tenant: 'patient' })
  const leave = async (index: number): Promise<void> => {
    const controller = new AbortController()
    const { signal } = controller
    const tenant = `tenant ${index}`
    const calls = [undefined, tenant].map(group => api.acquire(1, { tenant, group, signal }))
    controller.abort()
    await Promise.allSettled(calls)
  }
  const inUse = (): number => {
    collect()
    return process.memoryUsage().heapUsed
  }
  await leave(0)
  const before = inUse()
  for (let index = 1; index <= 4 * KEYS; index++) await leave(index)
  expect(inUse() - before).toBeLessThan(MAX_KEPT)
  expect(api.explain().place).toBe(1)
}, 60_000)
