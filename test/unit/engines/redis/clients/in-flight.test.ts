import { beforeEach, expect, test } from 'vitest'
import { VirtualClock } from '../../../../../src/base/clock.js'
import { InFlight } from '../../../../../src/engines/redis/clients/in-flight.js'

let clock: VirtualClock
let inFlight: InFlight
let told: string[]

beforeEach(() => {
  clock = new VirtualClock()
  told = []
  inFlight = new InFlight(clock, 100, {
    busy: () => told.push('busy'),
    idle: () => told.push('idle'),
    late: () => {
      told.push('late')
      return new Error('too late')
    },
  })
})

/** Returns an answer that the test settles. */
function answer() {
  let resolve!: (value: string) => void
  let reject!: (error: unknown) => void
  const promise = new Promise<string>((fulfil, fail) => {
    resolve = fulfil
    reject = fail
  })
  return { promise, resolve, reject }
}

const settled = (): Promise<void> => new Promise(resolve => setImmediate(resolve))
const follow = (promise: Promise<string>) => inFlight.follow(promise, error => `failed: ${String(error)}`)

test('rejects late answers, and nothing else', async () => {
  const [early, late, young] = [answer(), answer(), answer()]
  const done = follow(early.promise)
  const overdue = follow(late.promise)
  early.resolve('done')
  await done
  clock.advance(60)
  const later = follow(young.promise)
  clock.advance(40)
  await expect(overdue).rejects.toThrow('too late')
  expect(inFlight.size).toBe(1)
  late.resolve('after all')
  clock.advance(59)
  young.resolve('in time')
  await expect(later).resolves.toBe('in time')
  expect(told).toEqual(['busy', 'late', 'idle'])
})

test('a process that was stopped finds its answers before it calls them late', async () => {
  const { promise, resolve } = answer()
  const result = follow(promise)
  clock.advance(1000)
  resolve('done')
  await expect(result).resolves.toBe('done')
  await settled()
  expect(told).toEqual(['busy', 'idle'])
})
