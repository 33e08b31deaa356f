import type { Clock } from '../../../clock.js'
import { Later } from './later.js'
import type { NumberClock } from './number-clock.js'
import type { Patience } from './poll.js'
import { majorityOf } from './tally.js'
import type { Voter } from './voter.js'

/** Who has not answered within so many milliseconds is not waited for where others can be asked. */
const HURRY = 20
/** Who has not answered for so many milliseconds more counts as out of reach. */
const GIVE_UP = 1000

/** The servers of a quorum, and how they are asked. */
export class Electorate implements Patience {
  readonly voters: readonly Voter[]
  readonly majority: number
  readonly numbers: NumberClock
  readonly #hurry: Later<() => void>
  readonly #giveUp: Later<() => void>
  /** The servers as each of them would come first. */
  readonly #rotations: readonly (readonly number[])[]

  constructor(voters: readonly Voter[], numbers: NumberClock, clock: Clock) {
    const run = (task: () => void): void => task()
    this.voters = voters
    this.majority = majorityOf(voters.length)
    this.numbers = numbers
    this.#hurry = new Later(clock, HURRY, run)
    this.#giveUp = new Later(clock, GIVE_UP, run)
    this.#rotations = voters.map((_, first) => voters.map((__, index) => (first + index) % voters.length))
  }

  /**
   * The indexes of the servers in the order in which they are asked about a key. All who ask about it begin with the same
   * ones, so that they meet there; different keys begin with different ones, so that no server has all the work. Those
   * that did not answer in time when they were asked last come at the end.
   */
  preference(key: string): readonly number[] {
    const order = this.usual(key)
    if (!this.voters.some(({ isOverdue }) => isOverdue)) return order
    const late = (index: number): boolean => this.voters[index]!.isOverdue
    return [...order.filter(index => !late(index)), ...order.filter(late)]
  }

  /** The same order while all answer in time. */
  usual(key: string): readonly number[] {
    return this.#rotations[hashOf(key) % this.voters.length]!
  }

  /** Hears the hints of all servers from now on. Whoever waits looks by itself where they can't be heard. */
  listen(): void {
    for (const voter of this.voters) if (!voter.isHeard) voter.listen().catch(() => undefined)
  }

  hurry(task: () => void): void {
    this.#hurry.add(task)
  }

  giveUp(task: () => void): void {
    this.#giveUp.add(task)
  }
}

/** FNV-1a over the code units: the same in every process. */
function hashOf(key: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < key.length; index++) {
    hash = Math.imul(hash ^ key.charCodeAt(index), 0x01000193)
  }
  return hash >>> 0
}
