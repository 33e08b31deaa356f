import { execFileSync } from 'node:child_process'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { sharedClock, SleepCounter, systemClock, VirtualClock } from '../../../src/base/clock.js'
import { InvalidArgumentError } from '../../../src/base/errors.js'
import { useFakeRuntime } from '../../support/fake-runtime.js'

describe('the system clock', () => {
  afterEach(() => void vi.useRealTimers())

  test('it never goes back when the wall clock does', () => {
    let last = systemClock.now()
    vi.useFakeTimers({ toFake: ['Date'], now: 0 })
    for (let round = 0; round < 1000; round++) {
      const now = systemClock.now()
      expect(now).toBeGreaterThanOrEqual(last)
      last = now
    }
  })

  test('the one that processes share is the same in every process of the machine', () => {
    const before = sharedClock.now()
    const other = Number(execFileSync(process.execPath, ['-p', 'Number(process.hrtime.bigint()) / 1e6']))
    const after = sharedClock.now()
    expect(other).toBeGreaterThanOrEqual(before - 1)
    expect(other).toBeLessThanOrEqual(after + 1)
  })

  test('a task runs once, not before its time', async () => {
    let runs = 0
    const early: number[] = []
    const run = (delay: number): Promise<void> =>
      new Promise(resolve => {
        const start = systemClock.now()
        const task = (): void => {
          runs++
          const missing = delay - (systemClock.now() - start)
          if (missing > 0) early.push(missing)
          resolve()
        }
        systemClock.after(delay, task, true)
      })
    await Promise.all(Array.from({ length: 200 }, (_, index) => run(1 + index / 7)))
    expect(early).toEqual([])
    await new Promise(resolve => setTimeout(resolve, 40))
    expect(runs).toBe(200)
  })

  test('a delay that takes several timers of the runtime is kept', () => {
    useFakeRuntime({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    vi.spyOn(systemClock, 'now').mockImplementation(() => performance.now())
    const hour = 3_600_000
    let runs = 0
    systemClock.after(hour, () => runs++, true)
    vi.advanceTimersByTime(hour - 10)
    expect(runs).toBe(0)
    vi.advanceTimersByTime(20)
    expect(runs).toBe(1)
    const timer = systemClock.after(hour, () => runs++, false)
    vi.advanceTimersByTime(hour - 10)
    timer.cancel()
    vi.advanceTimersByTime(hour)
    expect(runs).toBe(1)
  })

  test('a task that fell due while the machine slept runs soon after', () => {
    useFakeRuntime({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    let slept = 0
    vi.spyOn(systemClock, 'now').mockImplementation(() => performance.now() + slept)
    const hour = 3_600_000
    let runs = 0
    systemClock.after(hour, () => runs++, true)
    vi.advanceTimersByTime(2500)
    slept = hour
    vi.advanceTimersByTime(1000)
    expect(runs).toBe(1)
  })

  test('only an awaited task keeps a process alive', () => {
    const unrefed = setTimeout(() => undefined, 0)
    const spy = vi.spyOn(Object.getPrototypeOf(unrefed) as { unref(): void }, 'unref')
    systemClock.after(1, () => undefined, true).cancel()
    expect(spy).not.toHaveBeenCalled()
    systemClock.after(1, () => undefined, false).cancel()
    expect(spy).toHaveBeenCalledTimes(1)
  })
})

/** A machine that can sleep, whose wall clock can be set, and whose uptime has a coarse resolution. */
class Machine {
  awake = 5000.5
  slept = 0
  set = 0
  uptimes = 0
  /** Time that passes during the next reading of the uptime, in milliseconds. */
  interruption = 0
  readonly counter: SleepCounter

  constructor(awake = 5000.5) {
    this.awake = awake
    this.counter = new SleepCounter({
      monotonic: () => this.awake,
      wall: () => Math.floor(1.7e12 + this.awake + this.slept + this.set),
      uptime: () => {
        this.uptimes++
        const uptime = Math.floor((this.awake + this.slept) / 10) * 10
        this.awake += this.interruption
        this.interruption = 0
        return uptime
      },
    })
  }

  /** Advances the time, and returns the sleep that the counter has measured, in milliseconds. */
  sleptAfter(duration: number): number {
    this.awake += duration
    if (this.awake >= this.counter.checkAt) this.counter.check(this.awake)
    return this.counter.slept
  }
}

describe('the sleep of a machine', () => {
  test.each([30, 1000, 8000, 12 * 3_600_000])('of %d ms is counted, never as less', slept => {
    for (let phase = 0; phase < 10; phase += 0.7) {
      const machine = new Machine(5000 + phase)
      expect(machine.sleptAfter(1234)).toBe(0)
      machine.slept = slept
      const counted = machine.sleptAfter(1 + phase)
      expect(counted).toBeGreaterThanOrEqual(slept)
      expect(counted).toBeLessThanOrEqual(slept + 20)
      expect(machine.sleptAfter(100_000)).toBe(counted)
    }
  })

  test('does not include a change of the wall clock', () => {
    const machine = new Machine()
    for (const set of [3_600_000, -3_600_000, 0, 50, 100, -86_400_000]) {
      machine.set = set
      expect(machine.sleptAfter(1)).toBe(0)
      expect(machine.sleptAfter(333)).toBe(0)
    }
  })

  test('does not include the time of a stalled process, even if the wall clock is set', () => {
    const machine = new Machine()
    machine.interruption = 700
    machine.set = 3_600_000
    expect(machine.sleptAfter(1)).toBe(0)
    machine.interruption = 9000
    machine.slept = 8000
    const counted = machine.sleptAfter(1)
    expect(counted).toBeGreaterThanOrEqual(8000)
    expect(counted).toBeLessThanOrEqual(8020)
  })

  test('is looked for in the uptime only when the wall clock gives reason to', () => {
    const machine = new Machine()
    for (let time = 0; time < 10_000; time++) machine.sleptAfter(0.3)
    expect(machine.uptimes).toBe(1)
    machine.set = 1000
    for (let time = 0; time < 10_000; time++) machine.sleptAfter(0.3)
    expect(machine.uptimes).toBe(2)
  })
})

describe('the virtual clock', () => {
  test('it advances by a number of milliseconds, not back and not forever', () => {
    const clock = new VirtualClock(100)
    for (const duration of [NaN, -1, Infinity, '5' as never]) {
      expect(() => clock.advance(duration)).toThrow(InvalidArgumentError)
      expect(() => clock.advance(duration)).toThrow('duration must be milliseconds')
    }
    clock.advance(0)
    expect(clock.now()).toBe(100)
  })
})
