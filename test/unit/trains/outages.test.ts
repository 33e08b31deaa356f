import { IndeterminateError, UnavailableError } from 'signalbox'
import { expect, test } from 'vitest'
import type { Clock } from '../../../apps/trains/clock.js'
import { Log } from '../../../apps/trains/log/log.js'
import { Outages } from '../../../apps/trains/outages.js'
import { RunAbortedError } from '../../../apps/trains/worker/failure.js'

/** Starts outages on a clock that advances only while they sleep. Collects their log. */
function start(maxOutage: number) {
  const events: unknown[] = []
  const time = { now: 0 }
  const clock: Clock = {
    now: () => time.now,
    async sleep(duration) {
      time.now += duration
    },
  }
  const log = new Log({ write: line => events.push((JSON.parse(line) as { event: unknown }).event) }, 'info')
  return { outages: new Outages(maxOutage, log, clock), time, events }
}

/** Returns a task that fails with these errors, one after another, and then succeeds. */
function failing(...errors: Error[]): () => Promise<string> {
  return async () => {
    const error = errors.shift()
    if (error) throw error
    return 'done'
  }
}

const down = new UnavailableError('down')
const unclear = new IndeterminateError('unclear')

test('a task is retried while the engine is unreachable', async () => {
  const { outages, events } = start(30_000)
  expect(await outages.retryDuringOutage(failing(down, unclear, down))).toBe('done')
  expect(events).toEqual(['engine unreachable', 'engine reachable'])
})

const reachable = async () => 1
const always = (): Promise<never> => Promise.reject(down)

test('an engine that stays unreachable aborts the run, later calls at once', async () => {
  const { outages, time } = start(1000)
  const aborted = /^the engine was unreachable for 1000 ms: down; continue with --resume$/
  await expect(outages.retryDuringOutage(always, always)).rejects.toThrow(aborted)
  expect(time.now).toBe(1000)
  await expect(outages.retryDuringOutage(always, always)).rejects.toThrow(RunAbortedError)
  expect(time.now).toBe(1000)
  await outages.retryDuringOutage(failing())
  await expect(outages.retryDuringOutage(always)).rejects.toThrow(RunAbortedError)
  expect(time.now).toBe(2000)
})

test('a task that fails on a reachable engine fails by itself', async () => {
  const { outages, time, events } = start(1000)
  await expect(outages.retryDuringOutage(always, reachable)).rejects.toBe(down)
  expect(time.now).toBe(1000)
  expect(events).toEqual(['engine unreachable', 'engine reachable'])
})
