import type { Clock, Timer } from '../../src/base/clock.js'
import type { Box } from '../../src/box.js'
import type { Store } from '../../src/store/store.js'
import type { History } from './history.js'
import type { Random } from './random.js'
import type { Timeline } from './timeline.js'

interface Late {
  readonly kind: 'timer' | 'delivery'
  readonly task: () => void
}

/**
 * A process: its own view of the common time, and the gate through which all that happens to it has to go. A process
 * that has crashed runs nothing any more; one that is frozen runs it late.
 */
export class SimulatedProcess {
  readonly clock: Clock
  alive = true
  /** Timers that have been set and not yet run or been cancelled. */
  timers = 0
  /** Until when its requests and hints don't get through. */
  cutUntil = 0
  /** Until when trouble of its own (faults, freezes) may keep it from acting in time. */
  troubledUntil = -Infinity
  /** When it was last thawed. */
  thawedAt = -Infinity
  box: Box | undefined
  /** Whether it takes part: its box is there and not being closed. */
  open = false
  stores = new Map<string, Store>()
  session = ''
  readonly #timeline: Timeline
  readonly #history: History
  readonly #offset: number
  readonly #random: Random
  readonly #lateness: number
  #frozenUntil: number | undefined
  #late: Late[] = []

  /** @param offset of its clock: the clocks of two processes can't be compared. */
  constructor(
    readonly name: string,
    timeline: Timeline,
    history: History,
    random: Random,
    lateness: number,
    offset: number,
  ) {
    this.#timeline = timeline
    this.#history = history
    this.#random = random
    this.#lateness = lateness
    this.#offset = offset
    this.clock = {
      now: () => timeline.now + offset,
      after: (delay, task) => this.#after(delay + this.#random.next() * this.#lateness, task),
    }
  }

  get frozen(): boolean {
    return this.#frozenUntil !== undefined
  }

  /** The common time of a time on its clock. */
  common(time: number): number {
    return time - this.#offset
  }

  /** Runs something that comes from outside. */
  deliver(task: () => void): void {
    this.#enter({ kind: 'delivery', task })
  }

  /** Waits on its own clock. */
  sleep(duration: number): Promise<void> {
    return new Promise(resolve => this.clock.after(duration, resolve, true))
  }

  /** A timer that is exact, unless the process is frozen. */
  exactly(delay: number, task: () => void): Timer {
    return this.#after(delay, task)
  }

  crash(): void {
    this.alive = false
    this.#late = []
  }

  freeze(duration: number, timersFirst: boolean): void {
    const until = Math.max(this.#timeline.now + duration, this.#frozenUntil ?? 0)
    this.#frozenUntil = until
    this.troubled(until)
    this.#timeline.at(until, () => {
      if (this.#frozenUntil === until) this.thaw(timersFirst)
    })
  }

  /** Continues: what should have run meanwhile runs now, one by one. */
  thaw(timersFirst: boolean): void {
    if (this.#frozenUntil === undefined || !this.alive) return
    this.#frozenUntil = undefined
    this.thawedAt = this.#timeline.now
    const late = this.#late
    this.#late = []
    const timers = late.filter(({ kind }) => kind === 'timer')
    const deliveries = late.filter(({ kind }) => kind === 'delivery')
    this.#history.note(this.name, 'goes on')
    for (const one of timersFirst ? [...timers, ...deliveries] : [...deliveries, ...timers])
      this.#timeline.at(this.#timeline.now, () => this.#enter(one))
  }

  /** Something of its own has gone wrong, and may have its effects until then. */
  troubled(until: number): void {
    this.troubledUntil = Math.max(this.troubledUntil, until)
  }

  #after(delay: number, task: () => void): Timer {
    let waiting = true
    this.timers++
    const moment = this.#timeline.at(this.#timeline.now + Math.max(delay, 0), () =>
      this.#enter({
        kind: 'timer',
        task: () => {
          if (!waiting) return
          waiting = false
          this.timers--
          task()
        },
      }),
    )
    return {
      cancel: () => {
        if (!waiting) return
        waiting = false
        this.timers--
        moment.task = undefined
      },
    }
  }

  #enter(late: Late): void {
    if (!this.alive) return
    if (this.frozen) {
      this.#late.push(late)
      return
    }
    try {
      late.task()
    } catch (error) {
      this.#history.violate('P12', `${this.name} has an uncaught error: ${textOf(error)}`)
    }
  }
}

/** Returns the message and the stack of an error. */
export function textOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
