import { VirtualClock, type Clock, type Timer } from '../base/clock.js'
import { installedFakeTimers, type FakeTimers } from './fake-timers.js'
import { runtimeTimers } from '../base/runtime-timers.js'

/** A timer, which moves when fake timers are installed or uninstalled. */
interface TestTimer {
  readonly due: number
  readonly task: () => void
  /** Whether no caller waits for its effect. */
  readonly isBackground: boolean
  /** The set timer; undefined if it is never due. */
  set: Timer | undefined
}

/**
 * A clock that stands still until a test advances it. While fake timers of the test runner are installed, it follows
 * them: its timers are theirs, and its time advances with theirs. It sets no real timer.
 */
export class TestClock implements Clock {
  readonly #manual = new VirtualClock(Date.now())
  readonly #timers = new Set<TestTimer>()
  /** The fake timers that it follows. */
  #fake: FakeTimers | undefined
  /** The time of the fake timers when this clock read them last. */
  #fakeNow = 0
  /** Clock time until which all calls of `advance` together advance. */
  #until = 0

  now(): number {
    this.#follow()
    return this.#manual.now()
  }

  wall(): number {
    return this.#follow()?.wall() ?? this.#manual.now()
  }

  after(delay: number, task: () => void, keepAlive: boolean, isUpkeep = false): Timer {
    const due = this.now() + Math.max(delay, 0)
    const timer: TestTimer = { due, task, isBackground: !keepAlive || isUpkeep, set: undefined }
    this.#timers.add(timer)
    this.#set(timer)
    return { cancel: () => this.#cancel(timer) }
  }

  /**
   * Advances by `duration` milliseconds, and runs the due timers in order. Before each timer, runs all code that can
   * continue.
   */
  async advance(duration: number): Promise<void> {
    const fake = this.#follow()
    if (fake) return fake.advance(duration)
    const manual = this.#manual
    // A second call that comes meanwhile continues from the end of the first.
    const until = (this.#until = Math.max(this.#until, manual.now()) + duration)
    await settled()
    for (let next = manual.nextAt(); next !== undefined && next <= until; next = manual.nextAt()) {
      manual.advanceTo(next)
      await settled()
    }
    manual.advanceTo(until)
  }

  stop(): void {
    for (const timer of this.#timers) this.#cancel(timer)
  }

  /** Adopts the time of fake timers. If they were installed or uninstalled since the last call, moves the timers. */
  #follow(): FakeTimers | undefined {
    const fake = installedFakeTimers()
    if (this.#fake !== undefined) this.#readFake(this.#fake)
    if (fake !== this.#fake) {
      this.#fake = fake
      if (fake) this.#fakeNow = fake.now()
      for (const timer of this.#timers) {
        timer.set?.cancel()
        this.#set(timer)
      }
    }
    return fake
  }

  #readFake(fake: FakeTimers): void {
    const now = fake.now()
    // Clearing all fake timers sets their time back.
    this.#manual.freeze(Math.max(now - this.#fakeNow, 0))
    this.#fakeNow = now
  }

  #set(timer: TestTimer): void {
    const delay = timer.due - this.#manual.now()
    const run = (): void => {
      this.#timers.delete(timer)
      timer.task()
    }
    if (delay === Infinity) timer.set = undefined
    else if (this.#fake) timer.set = this.#fake.after(delay, run, timer.isBackground)
    else timer.set = this.#manual.after(delay, run)
  }

  #cancel(timer: TestTimer): void {
    timer.set?.cancel()
    this.#timers.delete(timer)
  }
}

/** Settles after all code that does not wait for time, I/O or another thread has run. */
function settled(): Promise<void> {
  return new Promise(resolve => runtimeTimers.setImmediate(resolve))
}
