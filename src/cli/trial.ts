import { randomUUID } from 'node:crypto'
import type { Box, Diagnosis, Finding, Grant, Lock } from '../index.js'
import { systemClock } from '../clock.js'
import { InvalidArgumentError } from '../errors.js'
import { shortDuration } from '../duration.js'

/**
 * The store and the limit that a trial uses; nothing of it stays. Trials that run at once do not disturb each other
 * there.
 */
const NAME = 'signalbox-doctor'
/** How engines tell that another program has written in the place of what is theirs. */
const SPOILED = /another program|is no JSON/
const ROUND_TRIPS = 15
/** Milliseconds. A lease is renewed when a third of it is over, and the shortest that are of use are some 500 ms. */
const SLOW = 100

/** Uses an engine as everybody does: whether it lets this user, and how long it takes. */
export async function trial(box: Box): Promise<Diagnosis> {
  const findings: Finding[] = []
  const facts: string[] = []
  const works = new Set<string>()
  // A lock of its own: another doctor, or one that was killed just now, may hold one.
  const mutex = box.mutex(`${NAME}-${randomUUID()}`)
  for (const [what, use] of uses(box, mutex)) {
    try {
      await use()
      works.add(what)
    } catch (error) {
      // An engine that has no such thing says so in its guarantees.
      if (error instanceof InvalidArgumentError) facts.push(`no ${what} here`)
      else findings.push(refused(what, error))
    }
  }
  if (!works.has('locks')) return { facts, findings }
  const times = await roundTrips(works.has('stores') ? () => read(box) : () => mutex.tryAcquire())
  const [median, longest] = [times[Math.floor(times.length / 2)]!, times.at(-1)!]
  facts.push(`a round trip takes ${shown(median)}, the longest of ${times.length} took ${shown(longest)}`)
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

/** Something can't be used, and why. */
export function refused(what: string, error: unknown): Finding {
  const messages: string[] = []
  for (let at = error; at instanceof Error; at = at.cause) messages.push(at.message)
  return {
    id: `no-${what}`,
    promises: [],
    how: `no ${what}: ${[...new Set(messages)].join(': ')}`,
    fix: fixOf(messages),
  }
}

function fixOf(messages: readonly string[]): string {
  if (messages.some(message => SPOILED.test(message)))
    return `delete what another program has put there: the name ${NAME} is the doctor's own`
  return 'give this user the rights that the page of the engine names, or the server the room it lacks'
}

/** How long it took to ask for something small: milliseconds, the shortest first. */
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
    how: `a round trip takes ${shown(median)}, so a short lease is over before its renewal has arrived`,
    fix: `bring the engine nearer, or use leases of ${least} s and more`,
  }
}

function shown(milliseconds: number): string {
  return milliseconds < 10 ? `${milliseconds.toFixed(2)}ms` : shortDuration(milliseconds)
}
