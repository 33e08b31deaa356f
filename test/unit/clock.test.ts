import { execFileSync } from 'node:child_process'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { systemClock, VirtualClock } from '../../src/clock.js'
import { InvalidArgumentError } from '../../src/errors.js'

describe('the system clock', () => {
  afterEach(() => void vi.useRealTimers())

  test('it never goes back, whatever the wall clock does', () => {
    let last = systemClock.now()
    vi.useFakeTimers({ toFake: ['Date'], now: 0 })
    for (let round = 0; round < 1000; round++) {
      const now = systemClock.now()
      expect(now).toBeGreaterThanOrEqual(last)
      last = now
    }
  })

  test('it is the same in every process of the machine', () => {
    const before = systemClock.now()
    const other = Number(execFileSync(process.execPath, ['-p', 'Number(process.hrtime.bigint()) / 1e6']))
    const after = systemClock.now()
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

  test('a cancelled task never runs, and may be cancelled again', async () => {
    let runs = 0
    const timer = systemClock.after(5, () => runs++, true)
    timer.cancel()
    timer.cancel()
    await new Promise(resolve => setTimeout(resolve, 20))
    expect(runs).toBe(0)
  })

  test('a time that is past runs soon', async () => {
    await new Promise<void>(resolve => {
      systemClock.after(-1000, resolve, true)
    })
  })

  test('a time beyond what the runtime counts to is kept', () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    vi.spyOn(systemClock, 'now').mockImplementation(() => performance.now())
    const month = 30 * 86_400_000
    let runs = 0
    systemClock.after(month, () => runs++, true)
    vi.advanceTimersByTime(month - 10)
    expect(runs).toBe(0)
    vi.advanceTimersByTime(20)
    expect(runs).toBe(1)
    const timer = systemClock.after(month, () => runs++, false)
    vi.advanceTimersByTime(month - 10)
    timer.cancel()
    vi.advanceTimersByTime(month)
    expect(runs).toBe(1)
  })

  test('only what somebody awaits keeps a process alive', () => {
    const unrefed = setTimeout(() => undefined, 0)
    const spy = vi.spyOn(Object.getPrototypeOf(unrefed) as { unref(): void }, 'unref')
    systemClock.after(1, () => undefined, true).cancel()
    expect(spy).not.toHaveBeenCalled()
    systemClock.after(1, () => undefined, false).cancel()
    expect(spy).toHaveBeenCalledTimes(1)
  })
})

describe('the virtual clock', () => {
  test('it stands still until it is told to go on', () => {
    const clock = new VirtualClock(100)
    expect(clock.now()).toBe(100)
    clock.advance(50)
    expect(clock.now()).toBe(150)
  })

  test('what falls due runs in order of time, then of setting, at its time', () => {
    const clock = new VirtualClock()
    const ran: [string, number][] = []
    const set = (name: string, delay: number) => clock.after(delay, () => ran.push([name, clock.now()]))
    set('c', 30)
    set('a', 10)
    set('b', 10)
    const cancelled = set('never', 20)
    set('later', 31)
    expect(clock.nextAt()).toBe(10)
    cancelled.cancel()
    clock.advance(30)
    expect(ran).toEqual([
      ['a', 10],
      ['b', 10],
      ['c', 30],
    ])
    expect(clock.nextAt()).toBe(31)
    clock.advance(1)
    expect(ran).toHaveLength(4)
    expect(clock.nextAt()).toBeUndefined()
  })

  test('it goes on by a number of milliseconds, not back and not for ever', () => {
    const clock = new VirtualClock(100)
    for (const duration of [NaN, -1, Infinity, '5' as never]) {
      expect(() => clock.advance(duration)).toThrow(InvalidArgumentError)
      expect(() => clock.advance(duration)).toThrow('duration takes milliseconds')
    }
    clock.advance(0)
    expect(clock.now()).toBe(100)
  })

  test('what is set meanwhile runs too, if it falls due', () => {
    const clock = new VirtualClock()
    const ran: number[] = []
    const again = (): void => {
      ran.push(clock.now())
      clock.after(10, again)
    }
    clock.after(-5, again)
    clock.advance(25)
    expect(ran).toEqual([0, 10, 20])
  })

  test('a frozen clock jumps, and runs what was due late', () => {
    const clock = new VirtualClock()
    const ran: number[] = []
    clock.after(10, () => ran.push(clock.now()))
    clock.freeze(100)
    expect(ran).toEqual([])
    clock.advance(0)
    expect(ran).toEqual([100])
  })
})
