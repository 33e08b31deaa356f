import { setTimeout as sleep } from 'node:timers/promises'
import type { HeldLock, Locks } from '../locks/locks.js'
import { systemClock } from 'signalbox/engine'
import { COUNTERS, crowdOf } from '../protocol.js'
import type { Random } from 'signalbox-conformance'
import type { Link } from './link.js'

/** Maximum pause between read and write, in milliseconds. It is shorter in the crowd, where many clients wait. */
const MAX_WORK = 15
const MAX_WORK_IN_CROWD = 3

/** Takes the lock of a counter, reads the counter, pauses, and writes one more than it read. */
export class Counting {
  readonly #who: string
  readonly #run: string
  readonly #locks: Locks
  readonly #link: Link
  readonly #random: Random

  constructor(who: string, run: string, locks: Locks, link: Link, random: Random) {
    this.#who = who
    this.#run = run
    this.#locks = locks
    this.#link = link
    this.#random = random
  }

  /** Increments one of the counters, chosen at random, under its lock. */
  async once(): Promise<void> {
    const key = `${this.#run}:${COUNTERS[this.#random.below(COUNTERS.length)]!}`
    await this.#count(key, MAX_WORK)
  }

  /**
   * Reads the queue of the counter that all clients want, and then enters it. All requests that it sees came before its
   * own.
   * @param place distinguishes the tasks of a client.
   */
  async onceInTheCrowd(place: number): Promise<void> {
    const key = crowdOf(this.#run)
    const labels = (await this.#locks.waiters?.(key)) ?? []
    if (labels.length > 0) this.#link.report({ say: 'seen', labels, at: systemClock.now() })
    await this.#count(key, MAX_WORK_IN_CROWD, `${key}:${this.#who}:${place}`)
  }

  async #count(key: string, longest: number, ownKey?: string): Promise<void> {
    const call = this.#link.nextCall()
    const work = this.#random.below(longest)
    this.#link.report({ say: 'asked', call, key, at: systemClock.now() })
    const end = await this.#locks.use(
      key,
      ownKey,
      `${this.#who} ${call}`,
      held => this.#increment(call, key, held, work),
      () => this.#link.reportNow('leaving', call),
    )
    this.#link.report({ say: 'left', call, at: systemClock.now(), end })
  }

  async #increment(call: number, key: string, held: HeldLock, work: number): Promise<void> {
    const token = held.token === undefined ? {} : { token: String(held.token) }
    const at = systemClock.now()
    // A grant that has already ended counts as never held.
    if (!held.isHeld()) return
    this.#link.report({ say: 'granted', call, at, ...token })
    const read = await this.#link.ask({ say: 'read', call, key, ...token })
    await sleep(work)
    this.#check(call, held)
    // Fencing protects against holders that do not check their lock, so this writes even after a loss.
    await this.#link.ask({ say: 'write', call, key, read, ...token })
    this.#check(call, held)
  }

  /** Reports that the lock is held, with a time that is not later than the check. */
  #check(call: number, held: HeldLock): void {
    const at = systemClock.now()
    if (held.isHeld()) this.#link.reportNow('held', call, at)
  }
}
