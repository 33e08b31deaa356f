import type { Clock, Timer } from 'signalbox/engine'
import { AtMost } from './at-most.js'
import type { Decisions } from './decisions.js'
import type { GrantSigns } from './grant-signs.js'
import type { Reports } from './reports.js'
import type { Scan } from './scan.js'
import type { Sessions } from './sessions.js'

/** Interval at which one box of a place cleans up, in milliseconds. */
const SWEEP_INTERVAL = 60_000
/** Time after which an unused entry is assumed to be one that no open box will delete, in milliseconds. */
const UNUSED_FOR = 120_000
/** Maximum number of entries that are checked at the same time. */
const AT_ONCE = 32

/** Removes the requests of dead boxes from keys that are no longer used. */
export class Sweeper {
  readonly #decisions: Decisions
  readonly #reports: Reports
  readonly #scan: Pick<Scan, 'unused'>
  readonly #sessions: Pick<Sessions, 'isSweeper' | 'left' | 'forget' | 'leaveFree' | 'swept'>
  readonly #signs: Pick<GrantSigns, 'forget'>
  readonly #clock: Clock
  readonly #looks = new AtMost(AT_ONCE)
  #timer: Timer | undefined
  #hasSwept = false
  #isOver = false

  constructor(
    decisions: Decisions,
    reports: Reports,
    scan: Pick<Scan, 'unused'>,
    sessions: Pick<Sessions, 'isSweeper' | 'left' | 'forget' | 'leaveFree' | 'swept'>,
    signs: Pick<GrantSigns, 'forget'>,
    clock: Clock,
  ) {
    this.#decisions = decisions
    this.#reports = reports
    this.#scan = scan
    this.#sessions = sessions
    this.#signs = signs
    this.#clock = clock
  }

  /**
   * Call when this box is in use, to schedule a sweep. The first one is at a random time, so that boxes sweep even if
   * none lives for long.
   */
  used(): void {
    if (this.#timer || this.#isOver) return
    const delay = this.#hasSwept ? SWEEP_INTERVAL : Math.random() * SWEEP_INTERVAL
    const run = (): void => {
      this.#hasSwept = true
      const over = (): void => (this.#timer = undefined)
      this.#sweep().then(over, over)
    }
    this.#timer = this.#clock.after(delay, run, false)
  }

  end(): void {
    this.#isOver = true
    this.#timer?.cancel()
  }

  async #sweep(): Promise<void> {
    if (await this.#sessions.isSweeper(SWEEP_INTERVAL)) await this.sweep()
  }

  /** Sweeps once. Rejects if the sweep may be incomplete. */
  async sweep(): Promise<void> {
    const { sessions, marks } = await this.#sessions.left(UNUSED_FOR)
    if (sessions.length > 0) {
      await this.#reports.removeEnded(sessions)
      // The sessions may have used keys until just now.
      await this.#sessions.leaveFree()
      await this.#signs.forget(sessions)
      await this.#sessions.forget(sessions)
    }
    if (marks.length === 0) return
    const unused = await this.#scan.unused(UNUSED_FOR)
    await Promise.allSettled(unused.map(key => this.#looks.run(() => this.#decisions.look(key))))
    await this.#sessions.swept(marks)
  }
}
