import type { Box } from 'signalbox'
import { assert } from './assert.js'
import { testOn } from './boxes.js'
import { describe } from './checks.js'
import { hasLimits, keepsValues, type EngineFixture } from './fixture.js'
import { nothingHeld, pause } from './time.js'

/** Number of times that the connections are cut. A client may have several, and use another one for each call. */
const ROUNDS = 4
/** Time in which a frozen box has sent nothing, in milliseconds. */
const SILENCE = 100

/** A call of a box right after all its connections were cut, before the process can notice that. */
interface Call<T> {
  /** Whether it has no ID. Then it can't be sent again, but after a silence the box can check its connections. */
  readonly hasNoId?: boolean
  readonly call: (box: Box) => Promise<T>
  /** Checks the results from another box. */
  readonly check: (near: Box, results: readonly T[]) => unknown
}

/** P8, P10, P13: a process was frozen for a while, as serverless platforms do, and its connections have ended. */
export function thaw(fixture: EngineFixture): void {
  describe('connections that ended while the process was frozen', () => {
    const test = testOn(fixture)

    /** Adds a check that makes a call after each cut: after a silence, or in the middle of work. */
    function testCall<T>(name: string, { hasNoId = false, call, check }: Call<T>): void {
      test(name, async boxes => {
        const [box, network] = await boxes.overNetwork()
        const near = await boxes.open()
        await box.mutex('warm').run(() => undefined)
        const results: T[] = []
        for (let round = 0; round < ROUNDS; round++) {
          if (hasNoId || round % 2 === 0) await pause(SILENCE)
          network.cut()
          network.restore()
          results.push(await call(box))
        }
        await check(near, results)
      })
    }

    async function free(near: Box, tokens: readonly bigint[]): Promise<void> {
      for (const [index, token] of tokens.slice(1).entries()) assert.above(token, tokens[index])
      await nothingHeld(near)
    }

    testCall('a caller that waits gets the lock', {
      async call(box) {
        await using grant = await box.mutex('key').acquire({ wait: '5s' })
        return grant.token
      },
      check: free,
    })

    testCall('a try gets the lock', {
      async call(box) {
        await using grant = await box.mutex('key').tryAcquire()
        return grant!.token
      },
      check: free,
    })

    test('a grant is released', async boxes => {
      const [box, network] = await boxes.overNetwork()
      const near = await boxes.open()
      for (let round = 0; round < ROUNDS; round++) {
        const grant = await box.mutex('key').acquire({ lease: '30s' })
        if (round % 2 === 0) await pause(SILENCE)
        network.cut()
        network.restore()
        await grant.release()
        const next = await near.mutex('key').tryAcquire()
        assert.above(next!.token, grant.token)
        await next!.release()
      }
    })

    if (keepsValues(fixture)) {
      testCall('a value is read', {
        call: async box => (await box.store('s').get('key')) ?? 'absent',
        check: (_, found) => assert.deepEqual(found, Array<string>(ROUNDS).fill('absent')),
      })

      testCall('a value is written', {
        hasNoId: true,
        call: box => box.store('s').put('key', 'value'),
        async check(near, versions) {
          for (const [index, version] of versions.slice(1).entries()) assert.above(version, versions[index])
          assert.equal((await near.store('s').get('key'))?.version, versions.at(-1))
        },
      })

      let count = 0
      testCall('a transaction is committed once', {
        async call(box) {
          const transaction = box
            .store('s')
            .transaction(['sum'], state => state.put('sum', (state.get<number>('sum') ?? 0) + 1), {
              id: `change ${count++}`,
            })
          return (await transaction).applied
        },
        async check(near, applied) {
          assert.deepEqual(applied, Array<boolean>(ROUNDS).fill(true))
          assert.equal((await near.store('s').get('sum'))?.value, ROUNDS)
        },
      })
    }

    if (hasLimits(fixture)) {
      const limits = { limit: 2 * ROUNDS, per: '1h' } as const
      testCall('a permit is given, and counts once', {
        hasNoId: true,
        call: box => box.limiter('l', limits).acquire(1, { wait: '5s' }),
        async check(near) {
          assert.notEqual(await near.limiter('l', limits).tryAcquire(ROUNDS), undefined)
          assert.equal(await near.limiter('l', limits).tryAcquire(), undefined)
        },
      })
    }
  })
}
