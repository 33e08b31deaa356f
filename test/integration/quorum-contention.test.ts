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
import { startRedisServers } from '../support/servers/redis.js'

const CONTENDERS = 8
const ROUNDS = 6

// Boxes behave as on different machines: the distance between each box and each server is different, and changes.
test.each([3, 4, 5].flatMap(count => [0, 3].map(longest => ({ count, longest }))))(
  'of boxes with ways of up to $longest ms to $count servers one is inside at a time, and every waiter is woken',
  async ({ count, longest }) => {
    const servers = await startRedisServers(count)
    const voters: DistantVoter[] = []
    const prefix = `${randomUUID()}:`
    const boxes: Box[] = []
    for (let index = 0; index < CONTENDERS; index++) {
      const engine = await quorumEngine(servers, {
        prefix,
        between(voter, server) {
          const random = new Random((count + longest) * 1000 + index * 10 + server)
          const distant = new DistantVoter(voter, random, longest)
          voters.push(distant)
          return distant
        },
      })
      boxes.push(await Box.join(engine, systemClock))
    }
    const section = new Section()
    await Promise.all(
      boxes.map(async box => {
        // Leases are long, so a waiter that is not woken checks again only after the test has failed.
        for (let round = 0; round < ROUNDS; round++) await box.mutex('key').run(grant => section.visit(grant))
      }),
    )
    expect(section.most).toBe(1)
    expect(section.tokens).toHaveLength(CONTENDERS * ROUNDS)
    expect(rising(section.tokens)).toBe(true)
    expect(await locks(boxes[0]!)).toEqual([])
    const asked = (type: string): number => voters.reduce((sum, each) => sum + (each.asked.get(type) ?? 0), 0)
    // Each server gets one request for a lock, one check-in after the wake-up, and a few more when requests collide.
    expect(asked('enqueue')).toBeLessThanOrEqual(CONTENDERS * ROUNDS * count * 1.5)
    expect(asked('checkIn')).toBeLessThanOrEqual(CONTENDERS * ROUNDS * count * 4)
    await Promise.all(boxes.map(box => box.close()))
    await Promise.all(servers.map(server => server.kill()))
  },
)

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
