import { setTimeout } from 'node:timers/promises'
import type { Box, Grant } from '../../../src/index.js'
import { Random } from '../../../packages/conformance/src/random.js'
import { codeOf, complaintOf } from './outcome.js'
import { RedisPlace } from './place.js'

/** Long compared with everything that happens, so that only a mistake loses something, in milliseconds. */
const LEASE = 3000
/** When the keeper renews. */
const RENEWED_AFTER = LEASE / 3

export interface RacesOptions {
  /** How many requests there are. */
  readonly count: number
  /** How many are under way at the same time, for half as many keys. */
  readonly together: number
  readonly seed: number
}

/** What came of requests that were released, renewed and aborted at the same moment. */
export interface RacesResult {
  readonly granted: number
  readonly aborted: number
  readonly timedOut: number
  /** How many were released about when they were renewed. */
  readonly renewed: number
  /** What should not have happened, in words. */
  readonly wrongs: readonly string[]
  /** The keys that are there in the end. */
  readonly left: unknown
}

/**
 * Requests of several boxes that are aborted about when they are granted, and grants that are released about when they
 * are renewed: nothing may be lost that way, live on, or be renewed for another holder.
 */
export async function races({ count, together, seed }: RacesOptions): Promise<RacesResult> {
  await using here = await RedisPlace.start()
  const boxes = await here.boxes(3)
  /** Until when each key is certainly held: the machine may stop this process for longer than a lease. */
  const inside = new Map<string, number>()
  const last = new Map<string, bigint>()
  const wrongs: string[] = []
  const came = { granted: 0, aborted: 0, timedOut: 0, renewed: 0 }
  let begun = 0

  /** What a grant that isn't renewed has left on the server may not be more than it had, less what has passed. */
  async function unrenewed(key: string, grant: Grant, stay: number): Promise<void> {
    const since = performance.now()
    await setTimeout(stay)
    const passed = performance.now() - since
    const left = Number(await here.server.command('PTTL', key))
    // First, because a server that stood still until the lease had expired answers with the lease of the next holder.
    grant.assertHeld()
    if (left > LEASE - passed + 1)
      wrongs.push(`${key} has ${left} ms after ${passed} ms: another client renewed it`)
  }

  async function stay(random: Random, key: string, grant: Grant, renew: boolean): Promise<void> {
    if (!renew) return unrenewed(key, grant, random.below(random.below(3) > 0 ? 50 : RENEWED_AFTER + 200))
    if (random.below(3) > 0) {
      if (random.below(2) === 0) await setTimeout(random.below(3))
      return
    }
    came.renewed++
    await setTimeout(RENEWED_AFTER - 6 + random.below(12))
    grant.assertHeld()
  }

  async function one(random: Random, box: Box): Promise<void> {
    const key = `key ${random.below(together / 2)}`
    const abort = new AbortController()
    const renew = random.below(5) > 0
    const wait = random.below(4) === 0 ? 1 + random.below(30) : undefined
    if (random.below(3) === 0) void setTimeout(random.below(10)).then(() => abort.abort())
    const asked = box.mutex(key).acquire({ lease: LEASE, renew, wait, signal: abort.signal })
    const code = await codeOf(asked)
    if (code === 'ABORTED') came.aborted++
    else if (code === 'TIMED_OUT') came.timedOut++
    else if (code !== undefined) wrongs.push(`a request ended with ${code}`)
    if (code !== undefined) return
    came.granted++
    const grant = await asked
    const until = performance.now() + grant.expiresIn()
    if (performance.now() < (inside.get(key) ?? 0)) wrongs.push(`two hold ${key}`)
    if (grant.token <= (last.get(key) ?? 0n)) wrongs.push(`the token of ${key} fell`)
    inside.set(key, until)
    last.set(key, grant.token)
    const lost = await complaintOf(stay(random, key, grant, renew))
    if (lost !== undefined && performance.now() < until) wrongs.push(`${key} was lost: ${lost}`)
    inside.delete(key)
    const released = await codeOf(grant.release())
    if (released !== undefined && performance.now() < until) wrongs.push(`a release ended with ${released}`)
  }

  await Promise.all(
    Array.from({ length: together }, async (_, task) => {
      const random = new Random(seed + task)
      while (begun++ < count) await one(random, boxes[random.below(boxes.length)]!)
    }),
  )
  // What was given back in the background has had its time, and a renewal that comes late had it, too.
  await setTimeout(RENEWED_AFTER + 500)
  return { ...came, wrongs, left: await here.server.command('KEYS', '*') }
}
