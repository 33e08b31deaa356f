import { setTimeout } from 'node:timers/promises'
import type { Box, Grant } from '../../../src/index.js'
import { Random } from '../../../packages/conformance/src/random.js'
import { codeOf, complaintOf } from './outcome.js'
import { RedisPlace } from './place.js'

/** Longer than everything that happens, so that only a mistake loses a grant, in milliseconds. */
const LEASE = 3000
/** Time after which the keeper renews, in milliseconds. */
const RENEWED_AFTER = LEASE / 3

export interface RacesOptions {
  /** Number of requests. */
  readonly count: number
  /** Number of requests at the same time, for half as many keys. */
  readonly together: number
  readonly seed: number
}

/** The outcome of requests that were released, renewed and aborted at the same moment. */
export interface RacesResult {
  readonly granted: number
  readonly aborted: number
  readonly timedOut: number
  /** Number of grants that were released at about the time of their renewal. */
  readonly renewed: number
  /** Messages about violations. */
  readonly wrongs: readonly string[]
  /** The keys that are left at the end. */
  readonly left: unknown
}

/**
 * Aborts requests of several boxes at about the time of their grant, and releases grants at about the time of their
 * renewal. No grant may be lost by that, outlive its release, or be renewed for another holder.
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

  /**
   * Checks that a grant that isn't renewed has no more time left on the server than its lease, less the time passed.
   */
  async function unrenewed(key: string, grant: Grant, stay: number): Promise<void> {
    const since = performance.now()
    await setTimeout(stay)
    const passed = performance.now() - since
    const left = Number(await here.server.command('PTTL', key))
    // A server that stood still until the lease had expired answers with the lease of the next holder.
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
  // By then, releases in the background and late renewals have ended.
  await setTimeout(RENEWED_AFTER + 500)
  return { ...came, wrongs, left: await here.server.command('KEYS', '*') }
}
