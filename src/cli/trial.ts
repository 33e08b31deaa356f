import { randomUUID } from 'node:crypto'
import type { Box, Diagnosis, Finding, Grant, Lock } from '../index.js'
import { systemClock } from '../base/clock.js'
import { InvalidArgumentError } from '../base/errors.js'
import { shortDuration } from '../base/duration.js'

/**
 * The store and the limit that a trial uses. It removes its writes. Concurrent trials do not disturb each other there.
 */
const NAME = 'signalbox-doctor'
/** Messages of engines that found data of another program in place of theirs. */
const SPOILED = /another program|not valid JSON/
const ROUND_TRIPS = 15
/**
 * Round trip from which an engine is slow, in milliseconds. A lease is renewed after a third of it, and useful leases
 * last at least 500 ms.
 */
const SLOW = 100

/** Uses an engine as an application does: checks this user's rights, and measures the round trip. */
export async function trial(box: Box): Promise<Diagnosis> {
  const findings: Finding[] = []
  const facts: string[] = []
  const works = new Set<string>()
  // A lock of its own, because another doctor, or one that was killed just now, may hold a shared one.
  const mutex = box.mutex(`${NAME}-${randomUUID()}`)
  for (const [what, use] of uses(box, mutex)) {
    try {
      await use()
      works.add(what)
    } catch (error) {
      // The engine does not support it, as its guarantees say.
      if (error instanceof InvalidArgumentError) facts.push(`this engine has no ${what}`)
      else findings.push(refused(what, error))
    }
  }
  if (!works.has('locks')) return { facts, findings }
  const times = await roundTrips(works.has('stores') ? () => read(box) : () => mutex.tryAcquire())
  const [median, longest] = [times[Math.floor(times.length / 2)]!, times.at(-1)!]
  facts.push(`a round trip takes ${shown(median)} (median), ${shown(longest)} (longest of ${times.length})`)
  if (median > SLOW) findings.push(slow(median))
  return { facts, findings }
}

function uses(box: Box, mutex: Lock): [string, () => Promise<unknown>][] {
  return [
    ['locks', () => mutex.run(() => undefined, { wait: '5s', lease: '10s' })],
    [
      'stores',
      async () => {
        await box.store(NAME).put('trial', 1)
        await box.store(NAME).delete('trial')
      },
    ],
    [
      'limits',
      async () => {
        await using limiter = box.limiter(NAME, { limit: 1000, per: '1s' })
        await limiter.acquire(1, { wait: '2s' })
      },
    ],
  ]
}

export function refused(what: string, error: unknown): Finding {
  const messages: string[] = []
  for (let at = error; at instanceof Error; at = at.cause) messages.push(at.message)
  return {
    id: `no-${what}`,
    promises: [],
    how: `${what} can't be used: ${[...new Set(messages)].join(': ')}`,
    fix: fixOf(messages),
  }
}

function fixOf(messages: readonly string[]): string {
  if (messages.some(message => SPOILED.test(message)))
    return `delete what another program wrote there: the name ${NAME} is reserved for the doctor`
  return "grant this user the rights that the engine's page lists, or free memory or disk space on the server"
}

/** Measures small requests: durations in milliseconds, in ascending order. */
async function roundTrips(ask: () => Promise<Grant | undefined>): Promise<number[]> {
  const times: number[] = []
  for (let index = 0; index < ROUND_TRIPS; index++) {
    const begun = systemClock.now()
    const grant = await ask()
    times.push(systemClock.now() - begun)
    await grant?.release()
  }
  return times.sort((a, b) => a - b)
}

async function read(box: Box): Promise<undefined> {
  await box.store(NAME).get('trial')
}

function slow(median: number): Finding {
  const least = Math.ceil((median * 12) / 1000)
  return {
    id: 'slow',
    promises: ['P3', 'P9'],
    how: `a round trip takes ${shown(median)}, so a short lease can expire before its renewal arrives`,
    fix: `move the engine closer, or use leases of at least ${least} s`,
  }
}

function shown(milliseconds: number): string {
  return milliseconds < 10 ? `${milliseconds.toFixed(2)}ms` : shortDuration(milliseconds)
}
