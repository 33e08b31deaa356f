import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { Box } from '../../src/box.js'
import { systemClock } from '../../src/base/clock.js'
import { Random } from '../../packages/conformance/src/random.js'
import { rising, Section } from '../../packages/conformance/src/section.js'
import { locks, queued, until } from '../../packages/conformance/src/time.js'
import { Names } from '../../src/engines/redis/names.js'
import { DistantVoter } from '../support/servers/distant-voter.js'
import { quorumEngine } from '../support/servers/quorum.js'
import { startRedisServers, type RedisServer } from '../support/servers/redis.js'

const CONTENDERS = 8
const ROUNDS = 6

/**
 * Boxes that behave as on different machines. The distance between each box and each server is different, and changes.
 */
class Contenders implements AsyncDisposable {
  readonly boxes: Box[] = []
  readonly voters: DistantVoter[] = []

  static async meet(servers: readonly RedisServer[], seed: number, longest: number): Promise<Contenders> {
    const contenders = new Contenders()
    const prefix = `${randomUUID()}:`
    for (let index = 0; index < CONTENDERS; index++) {
      const engine = await quorumEngine(servers, {
        prefix,
        between: (voter, server) => {
          const distant = new DistantVoter(voter, new Random(seed * 1000 + index * 10 + server), longest)
          contenders.voters.push(distant)
          return distant
        },
      })
      contenders.boxes.push(await Box.join(engine, systemClock))
    }
    return contenders
  }

  asked(type: string): number {
    return this.voters.reduce((sum, { asked }) => sum + (asked.get(type) ?? 0), 0)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.boxes.map(box => box.close()))
  }
}

// Long leases, so that a waiter that is not woken checks again only after the test has failed.
for (const count of [3, 4, 5]) {
  describe(`${count} servers, ${CONTENDERS} contenders`, () => {
    const servers = startRedisServers(count)

    for (const longest of [0, 3]) {
      test(`ways of up to ${longest} ms: one at a time, and every waiter is woken`, async () => {
        await using contenders = await Contenders.meet(await servers, count + longest, longest)
        const section = new Section()
        const task = async (box: Box): Promise<void> => {
          for (let round = 0; round < ROUNDS; round++) {
            await box.mutex('key').run(grant => section.visit(grant))
          }
        }
        await Promise.all(contenders.boxes.map(task))
        expect(section.most).toBe(1)
        expect(section.tokens).toHaveLength(CONTENDERS * ROUNDS)
        expect(rising(section.tokens)).toBe(true)
        expect(await locks(contenders.boxes[0]!)).toEqual([])
        // Each server gets one request for a lock, one check-in after the wake-up, and a few more when requests
        // collide.
        expect(contenders.asked('enqueue')).toBeLessThanOrEqual(CONTENDERS * ROUNDS * count * 1.5)
        expect(contenders.asked('checkIn')).toBeLessThanOrEqual(CONTENDERS * ROUNDS * count * 4)
      })

      test(`ways of up to ${longest} ms: all ask at the same moment, again and again`, async () => {
        await using contenders = await Contenders.meet(await servers, 7 * count + longest, longest)
        for (let round = 0; round < 10; round++) {
          const section = new Section()
          await Promise.all(
            contenders.boxes.map(box => box.mutex(`key ${round}`).run(grant => section.visit(grant, 1, 0))),
          )
          expect(section.most).toBe(1)
          expect(section.tokens).toHaveLength(CONTENDERS)
          expect(rising(section.tokens)).toBe(true)
        }
      })

      test(`ways of up to ${longest} ms: sets of keys, readers, writers and permits`, async () => {
        await using contenders = await Contenders.meet(await servers, 13 * count + longest, longest)
        const keys = ['a', 'b', 'c', 'd']
        const sections = new Map(keys.map(key => [key, new Section()]))
        const tokens = new Map(keys.map(key => [key, [] as bigint[]]))
        const task = async (box: Box, seed: number): Promise<void> => {
          const random = new Random(seed)
          for (let round = 0; round < ROUNDS; round++) {
            const claims = random.some(keys, 1 + random.below(3)).map(key => {
              if (key === 'a') return { key, mode: 'permits', permits: 1 + random.below(3), max: 3 } as const
              return { key, mode: random.below(2) === 0 ? 'shared' : 'exclusive' } as const
            })
            await box.lock(...claims).run(async grant => {
              for (const { key, mode } of claims) if (mode === 'exclusive') tokens.get(key)!.push(grant.token)
              // A writer counts as much as many readers.
              const weight = (claim: (typeof claims)[number]): number =>
                claim.mode === 'permits' ? claim.permits : claim.mode === 'shared' ? 1 : 100
              await Promise.all(
                claims.map(claim => sections.get(claim.key)!.visit(grant, weight(claim), random.below(3))),
              )
            })
          }
        }
        await Promise.all(contenders.boxes.map((box, index) => task(box, count * 100 + index)))
        expect(sections.get('a')!.most).toBeLessThanOrEqual(3)
        for (const key of keys.slice(1)) {
          const { most } = sections.get(key)!
          expect(most === 100 || most < CONTENDERS + 1).toBe(true)
          expect(rising(tokens.get(key)!)).toBe(true)
        }
        expect(await locks(contenders.boxes[0]!)).toEqual([])
      })
    }
  })
}

/** Makes every message take the longest time. */
const SLOWLY = Object.assign(new Random(0), { below: (count: number) => count - 1 })

describe.each([0, 1, 2])('a waiter for which server %i is far', slow => {
  const started = startRedisServers(3)

  test('queues at the same servers as the waiters before it, so it is not woken in their place', async () => {
    const servers = await started
    const prefix = `${randomUUID()}:`
    const join = async (far?: number): Promise<Box> => {
      const engine = await quorumEngine(servers, {
        prefix,
        between: (voter, index) => (index === far ? new DistantVoter(voter, SLOWLY, 100) : voter),
      })
      return Box.join(engine, systemClock)
    }
    await using holder = await join()
    await using first = await join()
    await using second = await join(slow)
    const held = await holder.mutex('key').acquire()
    const served: string[] = []
    const asked = [first.mutex('key').run(() => void served.push('first'))]
    await queued(holder, 'key', 1)
    asked.push(second.mutex('key').run(() => void served.push('second')))
    await queued(holder, 'key', 2)
    const { requests } = new Names(prefix, false).group('')
    // Two servers know the holder and both waiters. The third server has no request, or only the holder's.
    await until('they stand together', async () => {
      const known = await Promise.all(servers.map(server => server.command('HLEN', requests)))
      return /^[01],3,3$/.test(String(known.sort()))
    })
    await held.release()
    await Promise.all(asked)
    expect(served).toEqual(['first', 'second'])
  })
})
