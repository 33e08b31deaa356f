import { expect, test } from 'vitest'
import { VirtualClock } from 'signalbox/limits'
import { GrantSigns } from '../src/grant-signs.js'

test('a grant is not taken while its sign can not be read', async () => {
  const clock = new VirtualClock(1000)
  const failing = () => Promise.reject(new Error('unreachable'))
  const own = { renewedAt: () => -Infinity, has: () => false, doubt: () => undefined }
  const store = { get: failing, replace: failing, remove: failing }
  const signs = new GrantSigns(
    store,
    clock,
    () => 'amy',
    own,
    () => -Infinity,
  )
  const grant = { id: 'bob.1', session: 'bob', sign: 1 }
  await signs.look([grant])
  clock.advance(1000)
  expect(signs.renewedAt(grant)).toBe(clock.now())
  expect(signs.hasEnded(grant)).toBe(false)
  await expect(signs.end(grant)).rejects.toThrow('unreachable')
  expect(signs.hasEnded(grant)).toBe(false)
})

test('a sign is looked up once a second, and waited for only if nothing is known of it', async () => {
  const clock = new VirtualClock(1000)
  let reads = 0
  const get = () => Promise.resolve(reads++ < 9 ? '[1,1]' : undefined)
  const never = () => Promise.reject(new Error('not expected'))
  const own = { renewedAt: () => -Infinity, has: () => false, doubt: () => undefined }
  const signs = new GrantSigns(
    { get, replace: never, remove: never },
    clock,
    () => 'amy',
    own,
    () => -Infinity,
  )
  const grants = [
    { id: 'bob.1', session: 'bob', sign: 1 },
    { id: 'bob.2', session: 'bob', sign: 1 },
    { id: 'amy.1', session: 'amy', sign: 1 },
  ]
  await expect(signs.look(grants)).resolves.toBeDefined()
  expect(reads).toBe(1)
  expect(signs.look(grants)).toBeUndefined()
  expect(reads).toBe(1)
  clock.advance(1000)
  expect(signs.look(grants)).toBeUndefined()
  expect(reads).toBe(2)
  await expect(signs.look([{ id: 'bob.3', session: 'bob', sign: 2 }])).resolves.toBeDefined()
})
