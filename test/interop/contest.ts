import { pause } from '../../packages/conformance/src/time.js'
import { overlaps } from '../../apps/chaos/check/intervals.js'
import { Client, type Kind, type Stay } from './client.js'
import { handOvers } from './hand-overs.js'
import type { Part } from './rounds.js'

/** The clients, their settings, and the conditions for the end. */
export interface Contest {
  readonly clients: readonly (readonly [Kind, Part])[]
  /** The contest ends when each hand-over, such as `one > other`, has happened this often. See {@link handOvers}. */
  readonly wanted: ReadonlyMap<string, number>
  /** Maximum duration, in milliseconds. */
  readonly limit: number
}

/** The outcome of a contest. */
export interface ContestResult {
  readonly stays: number
  readonly overlaps: readonly (readonly [Stay, Stay])[]
  readonly handOvers: ReadonlyMap<string, number>
}

/** Runs clients of several kinds that acquire and release the same lock in turn, each in a process of its own. */
export async function contest({ clients, wanted, limit }: Contest): Promise<ContestResult> {
  const started = await Promise.all(clients.map(([kind, part]) => Client.start(kind, part)))
  try {
    const all = (): Stay[] => started.flatMap(({ stays }) => stays)
    for (const client of started) client.begin()
    const deadline = performance.now() + limit
    const isOver = (): boolean => {
      const counts = handOvers(all())
      return (
        started.some(({ failure }) => failure !== undefined) ||
        [...wanted].every(([pair, count]) => (counts.get(pair) ?? 0) >= count)
      )
    }
    while (!isOver() && performance.now() < deadline) await pause(100)
    await Promise.all(started.map(client => client.stop()))
    const stays = all()
    return { stays: stays.length, overlaps: overlaps(stays), handOvers: handOvers(stays) }
  } finally {
    await Promise.all(started.map(client => client[Symbol.asyncDispose]()))
  }
}
