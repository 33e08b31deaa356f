import { setTimeout as sleep } from 'node:timers/promises'
import type { HeldLock, Locks } from '../locks/locks.js'
import { systemClock } from '../../../src/clock.js'
import { COUNTERS } from '../protocol.js'
import type { Random } from '../../../src/conformance/random.js'
import type { Link } from './link.js'

const LONGEST_WORK = 15
const LOOK_EVERY = 5

/** Takes a counter's lock, reads the counter, thinks, and writes one more than it read. */
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

  async once(): Promise<void> {
    const call = this.#link.nextCall()
    const key = `${this.#run}:${COUNTERS[this.#random.below(COUNTERS.length)]!}`
    const label = `${this.#who} ${call}`
    const work = this.#random.below(LONGEST_WORK)
    const looks = this.#locks.isQueued && this.#random.below(4) === 0
    const state = { isOver: false }
    this.#link.tell({ say: 'asked', call, key, at: systemClock.now() })
    const used = this.#locks.use(
      key,
      label,
      async held => {
        state.isOver = true
        await this.#increment(call, key, held, work)
      },
      () => this.#link.tellNow('leaving', call),
    )
    const looked = looks ? this.#look(call, key, label, state) : undefined
    const end = await used.finally(() => (state.isOver = true))
    this.#link.tell({ say: 'left', call, at: systemClock.now(), end })
    await looked
  }

  async #increment(call: number, key: string, held: HeldLock, work: number): Promise<void> {
    const token = held.token === undefined ? {} : { token: String(held.token) }
    const at = systemClock.now()
    // A grant that is over already was never held.
    if (!held.isHeld()) return
    this.#link.tell({ say: 'granted', call, at, ...token })
    const read = await this.#link.ask({ say: 'read', call, key, ...token })
    await sleep(work)
    this.#check(call, held)
    // Whoever does not look is what fencing is for, so it is written whatever came of the lock.
    await this.#link.ask({ say: 'write', call, key, read, ...token })
    this.#check(call, held)
  }

  /** Tells that it is held at a moment that is not later than the one at which that was found. */
  #check(call: number, held: HeldLock): void {
    const at = systemClock.now()
    if (held.isHeld()) this.#link.tellNow('held', call, at)
  }

  /** Looks at the queue until the request is seen in it, which proves that it has arrived. */
  async #look(call: number, key: string, label: string, state: { isOver: boolean }): Promise<void> {
    while (!state.isOver) {
      try {
        if (await this.#locks.isQueued!(key, label)) {
          this.#link.tellNow('queued', call)
          return
        }
      } catch {
        // A network that is down shows nothing.
      }
      await sleep(LOOK_EVERY)
    }
  }
}
