import { afterAll, expect, test, vi } from 'vitest'
import type { Box, Grant } from '../../src/index.js'
import { systemClock } from '../../src/base/clock.js'
import { pause } from '../../packages/conformance/src/time.js'
import { doEverything } from '../support/redis/everything.js'
import { RedisPlace } from '../support/redis/place.js'

/** Maximum number of operations in a call. */
const MOST = 16
const LEASE = 1500

/** Code that records the undeclared keys that a call uses. */
const TELLING = `
local KEYLESS = { TIME = true, PUBLISH = true }
local function checked(keys, how)
  local told = {}
  for _, name in ipairs(keys) do told[name] = true end
  return function(command, ...)
    local names = KEYLESS[command] and {} or command == 'MGET' and { ... } or { (...) }
    for _, name in ipairs(names) do
      if not told[name] then redis.call('RPUSH', 'untold', command .. ' ' .. name) end
    end
    redis.call('HINCRBY', 'used', command, 1)
    return how(command, ...)
  end
end
`

vi.mock(import('../../src/engines/redis/held-layout.js'), async original => {
  const { ServerCode } = await import('../../src/engines/redis/lua/server-code.js')
  const { tableCode } = await import('../../src/engines/redis/lua/table-code.js')
  const { luaFile } = await import('../../src/engines/redis/lua/lua-file.js')
  const { HELD_LAYOUTS } = await original()
  const checked = (layout: typeof HELD_LAYOUTS.string, heldKeys: string): typeof layout => {
    const calls = 'redis.call, redis.pcall'
    const text = tableCode(luaFile(heldKeys))
    expect(text).toContain(calls)
    const code = text.replace(calls, 'checked(keys, redis.call), checked(keys, redis.pcall)')
    return { ...layout, code: new ServerCode(TELLING + code) }
  }
  return {
    HELD_LAYOUTS: {
      string: checked(HELD_LAYOUTS.string, 'held-strings'),
      redisson: checked(HELD_LAYOUTS.redisson, 'held-hashes'),
    },
  }
})

const here = await RedisPlace.start()

afterAll(() => here[Symbol.asyncDispose]())

/** Returns the number of calls of the code during a task. */
async function callsOf(task: () => Promise<unknown>): Promise<number> {
  await here.server.command('CONFIG', 'RESETSTAT')
  await task()
  const { fcall = 0 } = await here.server.calls()
  return fcall
}

/** Acquires a number of locks in one tick. */
async function take(box: Box, count: number, lease: number): Promise<Grant[]> {
  const locks = Array.from({ length: count }, (_, index) => box.mutex(`key ${index}`))
  return Promise.all(locks.map(lock => lock.acquire({ lease })))
}

test.each([1, 10, MOST, MOST + 1, 600])(
  'the requests of one tick for %s locks take as few calls as possible',
  async count => {
    await using box = await here.box()
    await box.mutex('first').run(() => undefined)
    const calls = Math.ceil(count / MOST)
    let grants: Grant[] = []
    expect(await callsOf(async () => (grants = await take(box, count, 60_000)))).toBe(calls)
    expect(await callsOf(() => Promise.all(grants.map(grant => grant.release())))).toBe(calls)
  },
)

test('renewals are sent together, too', async () => {
  await using box = await here.box()
  const grants = await take(box, 600, LEASE)
  const begun = systemClock.now()
  const calls = await callsOf(() => pause(2 * LEASE))
  const times = (systemClock.now() - begun) / (LEASE / 3)
  for (const grant of grants) grant.assertHeld()
  // Each lock is renewed at least once within its lease.
  expect(calls).toBeGreaterThanOrEqual(Math.ceil(600 / MOST))
  // A busy machine needs more calls, but never one for each operation.
  expect(calls).toBeLessThanOrEqual((600 / 10) * (times + 2))
})

test.each(['string', 'redisson'])(
  'a call touches only the keys that it names, with the layout %s',
  async layout => {
    await here.server.command('DEL', 'untold', 'used')
    await doEverything(`${here.server.url}?prefix=${layout}:&layout=${layout}`)
    expect(await here.server.command('LRANGE', 'untold', 0, -1)).toEqual([])
    expect(await here.server.command('HKEYS', 'used')).toEqual(
      expect.arrayContaining(['SET', 'MGET', 'HRANDFIELD']),
    )
  },
)
