import type { Awaitable } from '../contract.js'

/** Calls `run` after everything that the present tick brings. */
export type Defer = (run: () => void) => void

/**
 * The default. A microtask that queues a tick runs after all promise reactions of the present tick, no matter what
 * called this.
 */
export const endOfTick: Defer = run => queueMicrotask(() => process.nextTick(run))

/**
 * Collects the jobs that one tick brings, so that they travel together. One run follows the other: what comes while a
 * run is under way waits for the next one.
 */
export class TickBatcher<Job> {
  readonly #run: () => Awaitable<void>
  readonly #defer: Defer
  #jobs: Job[] = []
  #isRunning = false
  readonly #onIdle: (() => void)[] = []

  /**
   * @param run takes jobs by {@link take} and does them. It is called again until none is left. Must not fail.
   * @param defer when a run begins.
   */
  constructor(run: () => Awaitable<void>, defer: Defer = endOfTick) {
    this.#run = run
    this.#defer = defer
  }

  /** How many jobs wait. */
  get size(): number {
    return this.#jobs.length
  }

  add(job: Job): void {
    this.#jobs.push(job)
    this.#start()
  }

  /** Takes out waiting jobs, the oldest first, up to a maximum number. */
  take(most = Infinity): Job[] {
    if (this.#jobs.length <= most) {
      const jobs = this.#jobs
      this.#jobs = []
      return jobs
    }
    return this.#jobs.splice(0, most)
  }

  /** Puts jobs back in front of those that wait. */
  putBack(jobs: readonly Job[]): void {
    this.#jobs.unshift(...jobs)
    this.#start()
  }

  /** Takes out the oldest waiting job that is meant; undefined when none is. */
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
      const running = this.#run()
      if (running instanceof Promise) void running.then(() => this.#ran())
      else this.#ran()
    })
  }

  #ran(): void {
    if (this.#jobs.length > 0) return this.#schedule()
    this.#isRunning = false
    for (const resolve of this.#onIdle.splice(0)) resolve()
  }
}
