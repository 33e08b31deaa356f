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
 * A process with its own view of the common time. All events reach it through a gate: a crashed process runs nothing
 * any more, and a frozen process runs its events late.
 */
export class SimulatedProcess {
  readonly clock: Clock
  alive = true
  /** Number of timers that are set and have neither run nor been cancelled. */
  timers = 0
  /** Common time until which its requests and hints do not get through. */
  cutUntil = 0
  /** Common time until which its own trouble (faults, freezes) may keep it from acting in time. */
  troubledUntil = -Infinity
  box: Box | undefined
  /** Whether it takes part: its box is open and not being closed. */
  open = false
  stores = new Map<string, Store>()
  session = ''
  readonly #timeline: Timeline
  readonly #history: History
  readonly #random: Random
  readonly #lateness: number
  #frozenUntil: number | undefined
  #late: Late[] = []

  /** @param offset offset of its clock: the clocks of two processes cannot be compared */
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
    this.clock = {
      now: () => timeline.now + offset,
      after: (delay, task) => this.#after(delay + this.#random.next() * this.#lateness, task),
    }
  }

  get frozen(): boolean {
    return this.#frozenUntil !== undefined
  }

  /** Runs a task that comes from outside. */
  deliver(task: () => void): void {
    this.#enter({ kind: 'delivery', task })
  }

  /** Waits on its own clock. */
  sleep(duration: number): Promise<void> {
    return new Promise(resolve => this.clock.after(duration, resolve, true))
  }

  /** Sets a timer that is exact, unless the process is frozen. */
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

  /** Continues a frozen process. Its late tasks run now, one by one. */
  thaw(timersFirst: boolean): void {
    if (this.#frozenUntil === undefined || !this.alive) return
    this.#frozenUntil = undefined
    const late = this.#late
    this.#late = []
    const timers = late.filter(({ kind }) => kind === 'timer')
    const deliveries = late.filter(({ kind }) => kind === 'delivery')
    this.#history.note(this.name, 'goes on')
    for (const one of timersFirst ? [...timers, ...deliveries] : [...deliveries, ...timers])
      this.#timeline.at(this.#timeline.now, () => this.#enter(one))
  }

  /** Records trouble that may have effects until this time. */
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
