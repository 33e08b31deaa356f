import { describe, expect, test } from 'vitest'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { locks, pause } from '../../packages/conformance/src/time.js'
import { open } from '../../src/open.js'
import { givesWay, HotKey } from '../support/hot-key.js'
import { RedisPlace } from '../support/redis/place.js'
import { until } from '../support/servers/until.js'

// Run one after the other, because tasks that only acquire and release a lock leave little time for other tests.
describe('turns of a key on Redis', () => {
  test('a key that only one process wants stays there, and a caller of another process is served next', async () => {
    await using here = await RedisPlace.start()
    const [one, other] = [await here.box(), await here.box()]
    const hot = new HotKey(one)
    await givesWay(hot, other)
    // After the other process is served, nothing prevents the key from staying in this process again.
    hot.tokens.length = 0
    await until(() => hot.turns > 16n)
    await hot.end()
    expect(await locks(other)).toEqual([])
  })

  test('a process without the right to channels asks for other waiters every 16 turns', async () => {
    await using here = await RedisPlace.start()
    const rights = 'on >secret resetchannels ~* +@all -subscribe -ssubscribe'
    await here.server.command('ACL', 'SETUSER', 'deaf', ...rights.split(' '))
    await using box = await open(`redis://deaf:secret@127.0.0.1:${here.server.port}`)
    const hot = new HotKey(box)
    await until(() => hot.tokens.length > 500)
    await hot.end()
    expect(hot.turns).toBeLessThan(16n)
  })

  test('a process that gets no hints about other waiters asks after a short time', async () => {
    await using here = await RedisPlace.start()
    await using proxy = await Proxy.start(here.server.port)
    await using box = await open(`redis://127.0.0.1:${proxy.port}`)
    const hot = new HotKey(box, () => pause(1))
    await until(() => hot.turns > 3n && hot.tokens.length > 100)
    proxy.replies = 'hold'
    const before = await hot.stalled()
    // Each turn takes at least a millisecond. A number has room for a thousand turns.
    expect(hot.tokens.at(-1)! & 1023n).toBeLessThan(100n)
    proxy.replies = 'pass'
    await until(() => hot.tokens.length > before)
    await hot.end()
  })
})
