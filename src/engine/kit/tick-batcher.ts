import type { Awaitable } from '../contract.js'
import { runtimeTimers } from '../../base/runtime-timers.js'

/** Calls `run` at the end of the current tick. */
export type Defer = (run: () => void) => void

/** Default: after all promise reactions of the current tick. */
export const endOfTick: Defer = run => runtimeTimers.queueMicrotask(() => runtimeTimers.nextTick(run))

/** Collects the jobs of one tick, so that they are sent together. Jobs that come during a run wait for the next one. */
export class TickBatcher<Job> {
  readonly #run: () => Awaitable<void>
  readonly #defer: Defer
  readonly #jobs: Job[] = []
  #isRunning = false
  #isUnderway = false
  readonly #onIdle: (() => void)[] = []

  /**
   * @param run takes jobs by {@link take} and executes them. It is called again until none is left. Must not fail.
   * @param defer determines when a run begins.
   */
  constructor(run: () => Awaitable<void>, defer: Defer = endOfTick) {
    this.#run = run
    this.#defer = defer
  }

  /** Number of waiting jobs. */
  get size(): number {
    return this.#jobs.length
  }

  /** Whether a run is under way, which a job that is added now waits for. */
  get isUnderway(): boolean {
    return this.#isUnderway
  }

  add(job: Job): void {
    this.#jobs.push(job)
    this.#start()
  }

  /** Removes and returns waiting jobs, the oldest first, at most `max`. */
  take(max = Infinity): Job[] {
    return this.#jobs.splice(0, max)
  }

  /** Puts jobs back ahead of those that wait. */
  putBack(jobs: readonly Job[]): void {
    this.#jobs.unshift(...jobs)
    this.#start()
  }

  /** Removes and returns the oldest waiting job that matches; undefined if none does. */
  withdraw(isMeant: (job: Job) => boolean): Job | undefined {
    const at = this.#jobs.findIndex(isMeant)
    return at < 0 ? undefined : this.#jobs.splice(at, 1)[0]
  }

  /** Settles when all jobs are done. */
  idle(): Promise<void> {
    return this.#isRunning ? new Promise(resolve => this.#onIdle.push(resolve)) : Promise.resolve()
  }

  #start(): void {
    if (this.#isRunning) return
    this.#isRunning = true
    this.#schedule()
  }

  #schedule(): void {
    this.#defer(() => {
      this.#isUnderway = true
      const running = this.#run()
      if (running instanceof Promise) void running.then(() => this.#ran())
      else this.#ran()
    })
  }

  #ran(): void {
    this.#isUnderway = false
    if (this.#jobs.length > 0) return this.#schedule()
    this.#isRunning = false
    for (const resolve of this.#onIdle.splice(0)) resolve()
  }
}
