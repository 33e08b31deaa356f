import { describe, expect, test } from 'vitest'
import type { Box } from '../../src/box.js'
import { locks, pause } from '../../packages/conformance/src/time.js'
import { open } from '../../src/open.js'
import { startEngine } from '../support/servers/engines.js'
import { startRedis } from '../support/servers/redis.js'
import { until } from '../support/servers/until.js'

/** Tasks of a process that acquire one lock over and over, until `end` is called. */
class HotKey {
  readonly tokens: bigint[] = []
  readonly #end = new AbortController()
  readonly #tasks: Promise<void>[]

  constructor(box: Box) {
    this.#tasks = Array.from({ length: 8 }, async () => {
      while (!this.#end.signal.aborted)
        await box.mutex('key').run(({ token }) => void this.tokens.push(token))
    })
  }

  /** Maximum number of turns of one grant number. */
  get turns(): bigint {
    return this.tokens.reduce((most, token) => ((token & 1023n) > most ? token & 1023n : most), 0n)
  }

  async end(): Promise<void> {
    this.#end.abort()
    await Promise.all(this.#tasks)
    const disorder = this.tokens.findIndex((token, index) => index > 0 && token <= this.tokens[index - 1]!)
    expect(disorder).toBe(-1)
  }
}

// Run one after the other, because tasks that only acquire and release a lock leave little time for other tests.
describe('turns of a key', () => {
  test.each(['Redis', 'ZooKeeper'] as const)(
    'on %s a key that only one process wants stays there, and a caller of another process is served next',
    async engine => {
      const place = await startEngine(engine)
      const url = engine === 'ZooKeeper' ? `${place}?sessionTimeout=60s` : place
      await using one = await open(url)
      await using other = await open(url)
      const hot = new HotKey(one)
      const { tokens } = hot
      // One grant number has at most 16 turns if others may wait.
      await until(() => hot.turns > 16n)
      for (let round = 0; round < 20; round++) {
        const known = tokens.length
        const grant = await other.mutex('key').acquire()
        const last = tokens.at(-1)!
        await pause(5)
        // While it is held elsewhere no task is inside, and all tokens rise.
        expect(tokens.at(-1)).toBe(last)
        expect(grant.token).toBeGreaterThan(last)
        await grant.release()
        await until(() => tokens.length > known)
      }
      // After the other process is served, nothing prevents the key from staying in this process again.
      tokens.length = 0
      await until(() => hot.turns > 16n)
      await hot.end()
      expect(await locks(other)).toEqual([])
    },
  )

  test('a process without the right to the channels of Redis asks for other waiters every 16 turns', async () => {
    await using server = await startRedis()
    const rights = 'on >secret resetchannels ~* +@all -subscribe -ssubscribe'
    await server.command('ACL', 'SETUSER', 'deaf', ...rights.split(' '))
    await using box = await open(`redis://deaf:secret@127.0.0.1:${server.port}`)
    const hot = new HotKey(box)
    await until(() => hot.tokens.length > 500)
    await hot.end()
    expect(hot.turns).toBeLessThan(16n)
  })
})
