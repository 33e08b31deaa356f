import { randomUUID } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { redisSemaphore, signalbox, Client, type Kind } from './client.js'
import { contest, type ContestResult } from './contest.js'
import type { Part } from './rounds.js'

/** The server, and the names, that clients of several kinds share. */
export interface Place {
  /** URL of the server, or of the servers of a quorum. */
  readonly url: string
  /** The prefix that Signalbox adds to each name: none, or {@link PREFIX}. */
  readonly prefix: '' | typeof PREFIX
  readonly layout: 'string' | 'redisson'
}

/** The prefix of each name, which redis-semaphore adds. */
const PREFIX = 'mutex:'

/** Longer than any stall of a busy machine, in milliseconds. */
const LONG_LEASE = 60_000
const SHORT_LEASE = 300
/** Waits for a lock that becomes free, and for a lock that does not, in milliseconds. */
const PATIENT = 30_000
const IMPATIENT = 100

type Manner = Partial<Pick<Part, 'lease' | 'renew' | 'retry' | 'excludes'>>

/** Returns the settings of a client of this kind. With these settings, clients of all kinds use the same lock. */
function part(place: Place, kind: Kind, name: string, manner: Manner = {}): Part {
  const { url, prefix, layout } = place
  const prefixes = kind === redisSemaphore || (kind.isOurs && prefix !== '')
  return {
    // URLs of folders have neither a prefix nor a layout.
    url:
      kind.isOurs && !url.startsWith('file:')
        ? `${url}?prefix=${prefix}${layout === 'string' ? '' : `&layout=${layout}`}`
        : url,
    name: prefixes ? name : PREFIX + name,
    lease: LONG_LEASE,
    renew: true,
    retry: 5,
    hold: 1,
    pause: 10,
    excludes: true,
    ...manner,
  }
}

/** Starts clients that want the same lock. They end with the test. */
async function start(
  place: Place,
  name: string,
  ...clients: readonly (readonly [Kind, Manner?])[]
): Promise<Client[]> {
  return Promise.all(
    clients.map(async ([kind, manner]) => {
      const client = await Client.start(kind, part(place, kind, name, manner))
      onTestFinished(() => client[Symbol.asyncDispose]())
      return client
    }),
  )
}

/** Adds tests in which Signalbox and another kind of client acquire the same lock one after the other. */
export function meetings(place: () => Place, kind: Kind): void {
  test('each side excludes the other while it holds, and the other gets in afterwards', async () => {
    const [ours, theirs] = (await start(place(), randomUUID(), [signalbox], [kind])) as [Client, Client]
    expect(await ours.acquire(PATIENT)).toBe(true)
    expect(await theirs.acquire(IMPATIENT)).toBe(false)
    const theirTurn = theirs.acquire(PATIENT)
    expect(await ours.release()).toBe(true)
    expect(await theirTurn).toBe(true)
    expect(await ours.acquire(IMPATIENT)).toBe(false)
    const ourTurn = ours.acquire(PATIENT)
    expect(await theirs.release()).toBe(true)
    expect(await ourTurn).toBe(true)
    expect(await ours.release()).toBe(true)
  })

  test('who was too slow does not give back what the other has by then', async () => {
    const short = { lease: SHORT_LEASE, renew: false }
    const clients = await start(place(), randomUUID(), [signalbox], [kind], [signalbox, short], [kind, short])
    const [ours, theirs, ourSlow, theirSlow] = clients as [Client, Client, Client, Client]
    expect(await ourSlow.acquire(PATIENT)).toBe(true)
    expect(await theirs.acquire(PATIENT)).toBe(true)
    expect(await ourSlow.release()).toBe(false)
    expect(await ours.acquire(IMPATIENT)).toBe(false)
    expect(await theirs.release()).toBe(true)

    expect(await theirSlow.acquire(PATIENT)).toBe(true)
    expect(await ours.acquire(PATIENT)).toBe(true)
    // Ignores the result, because not all clients can detect that they were too late.
    await theirSlow.release()
    expect(await theirs.acquire(IMPATIENT)).toBe(false)
    expect(await ours.release()).toBe(true)
  })
}

/**
 * Runs clients that lock the same name in turn, until each hand-over in `wanted` has happened that often, or until the
 * limit is over.
 */
export function meetByTurns(
  place: Place,
  kinds: readonly Kind[],
  wanted: ReadonlyMap<string, number>,
  limit: number,
  manner: Manner = {},
): Promise<ContestResult> {
  const name: string = randomUUID()
  return contest({ clients: kinds.map(kind => [kind, part(place, kind, name, manner)]), wanted, limit })
}

/** Expects that each hand-over has happened this often. */
export function expectHandOvers({ handOvers }: ContestResult, wanted: ReadonlyMap<string, number>): void {
  for (const [pair, times] of wanted) expect(handOvers.get(pair) ?? 0, pair).toBeGreaterThanOrEqual(times)
}

/** Adds a test in which processes of Signalbox and of another kind are never inside at once. */
export function contests(
  place: () => Place,
  kind: Kind,
  times: number,
  limit: number,
  manner?: Manner,
): void {
  test('are never inside at once', async () => {
    const wanted = withOurs([kind], times)
    const result = await meetByTurns(place(), [signalbox, signalbox, kind, kind], wanted, limit, manner)
    expect(result.overlaps).toEqual([])
    expectHandOvers(result, wanted)
  })
}

/** Returns the hand-overs from Signalbox to each of the kinds and back. */
export function withOurs(kinds: readonly Kind[], times: number): Map<string, number> {
  return new Map(
    kinds.flatMap(({ kind }) =>
      [`${kind} > ${signalbox.kind}`, `${signalbox.kind} > ${kind}`].map(pair => [pair, times]),
    ),
  )
}
