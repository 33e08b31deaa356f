import { expect, test } from 'vitest'
import { countingSleep } from '../src/clock.js'

const HOUR = 3_600_000

/** A system whose clocks the test sets. */
class System {
  monotonic = 5
  wall = 1e12
  uptime = 40

  now = countingSleep({
    monotonic: () => this.monotonic,
    wall: () => this.wall,
    uptime: () => Math.floor(this.uptime / 10) * 10,
  })

  run(duration: number): void {
    this.monotonic += duration
    this.sleep(duration)
  }

  sleep(duration: number): void {
    this.wall += duration
    this.uptime += duration
  }
}

test('the time during which a machine sleeps counts, up to two steps of its uptime', () => {
  const system = new System()
  const begun = system.now()
  system.run(100)
  system.sleep(HOUR)
  system.run(7)
  expect(Math.abs(system.now() - begun - HOUR - 107)).toBeLessThanOrEqual(20)
})

test('setting the wall clock changes nothing', () => {
  const system = new System()
  const begun = system.now()
  for (const jump of [HOUR, -3 * HOUR, 11, HOUR]) {
    system.wall += jump
    system.run(33)
    system.now()
  }
  expect(system.now() - begun).toBe(4 * 33)
})
