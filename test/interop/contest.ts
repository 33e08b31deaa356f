import { pause } from '../../packages/conformance/src/time.js'
import { overlaps } from '../../apps/chaos/check/intervals.js'
import { Client, type Kind, type Stay } from './client.js'
import { handOvers } from './hand-overs.js'
import type { Part } from './rounds.js'

/** Who takes part, how they call the lock, and when it is over. */
export interface Contest {
  readonly clients: readonly (readonly [Kind, Part])[]
  /** It ends when each of these has happened so often: `one > other`, see {@link handOvers}. */
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

/** Lets clients of several kinds go in and out by turns, each in a process of its own. */
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
