import { describe } from './checks.js'
import { assert } from './assert.js'
import { LostError, type Box } from 'signalbox'
import { testOn } from './boxes.js'
import type { EngineFixture } from './fixture.js'
import { Random } from './random.js'
import { rising } from './section.js'
import { LAPSING, locks, pause, queued } from './time.js'

/** Time in which keys are not used, in milliseconds. */
const IDLE = 1200

/** P2: tokens of one key strictly increase in grant order. */
export function fencing(fixture: EngineFixture): void {
  describe('P2 tokens increase', () => {
    const test = testOn(fixture)

    test('tokens increase over more waiters of one box than a grant has turns', async boxes => {
      const box = await boxes.open()
      const tokens: bigint[] = []
      await Promise.all(
        Array.from({ length: 1100 }, () => box.mutex('key').run(grant => void tokens.push(grant.token))),
      )
      assert.hasLength(tokens, 1100)
      assert.equal(rising(tokens), true)
    })

    test('the tokens of each key increase when it is locked in changing sets of keys', async boxes => {
      const all = await boxes.several(3)
      const random = new Random(5)
      const byKey = new Map(['a', 'b', 'c', 'd'].map(key => [key, [] as bigint[]]))
      const task = async (box: Box): Promise<void> => {
        for (let round = 0; round < 8; round++) {
          const keys = random.some([...byKey.keys()], 1 + random.below(3))
          await box.mutex(...keys).run(grant => {
            for (const key of keys) byKey.get(key)!.push(grant.token)
          })
        }
      }
      await Promise.all([...all, ...all].map(task))
      for (const tokens of byKey.values()) assert.equal(rising(tokens), true)
    })

    test('tokens of write grants increase across readers and downgrades', async boxes => {
      const [one, other] = await boxes.pair()
      const tokens: bigint[] = []
      for (const box of [one, other, one, one]) {
        const { read, write } = box.readWriteLock('key')
        await write.run(async grant => {
          tokens.push(grant.token)
          await grant.downgrade()
        })
        await read.run(() => undefined)
      }
      assert.equal(rising(tokens), true)
    })

    test('tokens increase after every way in which a grant can end', async boxes => {
      const [one, other] = await boxes.pair()
      const tokens: bigint[] = []
      const take = async (box: Box): Promise<bigint> => {
        const grant = await box.mutex('key').acquire()
        tokens.push(grant.token)
        return grant.token
      }
      const lapsing = await one.mutex('key').acquire({ lease: LAPSING, renew: false })
      tokens.push(lapsing.token)
      const token = await take(other)
      assert.equal(await one.forceRelease('key', token), true)
      await take(one)
      assert.equal(await other.revoke(one.session), 1)
      await take(other)
      await other.close()
      await take(await boxes.open())
      assert.hasLength(tokens, 5)
      assert.equal(rising(tokens), true)
    })

    test('tokens increase after a key was not used for longer than its lease', async boxes => {
      const [one, other] = await boxes.pair()
      const options = { lease: 300, renew: false } as const
      const lapsed = await one.mutex('lapsed').acquire(options)
      const released = await one.mutex('released').acquire(options)
      await released.release().catch((error: unknown) => assert.isA(error, LostError))
      await pause(IDLE)
      for (const grant of [lapsed, released]) {
        const later = await other.mutex(...grant.keys).acquire()
        assert.above(later.token, grant.token)
      }
    })

    test('tokens increase after all boxes were closed and new ones opened', async boxes => {
      const tokens: bigint[] = []
      for (let life = 0; life < 4; life++) {
        const [one, other] = await boxes.pair()
        for (const box of [one, other]) {
          const grant = await box.mutex('key').acquire()
          tokens.push(grant.token)
          await grant.release()
        }
        await boxes.closeAll()
      }
      assert.equal(rising(tokens), true)
    })

    test('a token is a bigint that fits a signed 64-bit column', async boxes => {
      const box = await boxes.open()
      const grant = await box.mutex('key').acquire()
      assert.equal(typeof grant.token, 'bigint')
      assert.equal(BigInt.asIntN(64, grant.token), grant.token)
      assert.above(grant.token, 0n)
    })

    test('inspect shows the token of a holder', async boxes => {
      const [one, other] = await boxes.pair()
      const held = await one.mutex('key').acquire()
      const waiting = other.mutex('key').acquire()
      await queued(one, 'key', 1)
      const [report] = await locks(one, 'key')
      assert.equal(report!.holders[0]!.token! >> 10n, held.token >> 10n)
      assert.equal(report!.waiters[0]!.token, undefined)
      await held.release()
      await (await waiting).release()
    })
  })
}
