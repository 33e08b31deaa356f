import {
  ConflictError,
  IndeterminateError,
  LostError,
  UnavailableError,
  type Box,
  type Store,
} from 'signalbox'
import { WAITER_TTL } from 'signalbox/engine'
import { assert } from './assert.js'
import { testOn } from './boxes.js'
import { describe } from './checks.js'
import { keepsValues, type EngineFixture } from './fixture.js'
import { connected, locks, nothingHeld, pause, queued, soFar, until } from './time.js'

/** The lease of requests that must not expire during a check. */
const LEASE = '60s'
/**
 * Maximum time until a repeated request waits only once, in milliseconds: before a second one would expire as silent.
 */
const ONCE = WAITER_TTL / 2
/** Maximum time until the effect of a request that arrives, in milliseconds. */
const SOON = 500

/** A change of a key that is absent. `lose` is called right before the request that commits it. */
type Change = (store: Store, lose: () => void) => Promise<unknown>

const changes: Readonly<Record<string, Change>> = {
  put: (store, lose) => {
    lose()
    return store.put('key', 'mine')
  },
  compareAndSet: (store, lose) => {
    lose()
    return store.compareAndSet('key', 0, 'mine')
  },
  transaction: (store, lose) =>
    store.transaction(['key'], transaction => {
      transaction.put('key', 'mine')
      lose()
    }),
  'transaction with an ID': (store, lose) =>
    store.transaction(
      ['key'],
      transaction => {
        transaction.put('key', 'mine')
        lose()
      },
      { id: 'change' },
    ),
}

/** P7, P8, P13: a connection breaks before the reply to a request has arrived, or before the request has. */
export function lostReplies(fixture: EngineFixture): void {
  if (fixture.network === 'none') return
  const test = testOn(fixture)

  describe('P7 a release affects only its own grant', () => {
    test('a release whose connection breaks before the reply does not affect the next holder', async boxes => {
      const [near, third] = await boxes.pair()
      const [box, network] = await boxes.overNetwork()
      const grant = await box.mutex('key').acquire({ lease: LEASE })
      const asked = near.mutex('key').acquire({ lease: LEASE })
      await queued(near, 'key', 1)
      network.swallow('replies')
      const released = grant.release().catch((error: unknown) => assert.isA(error, IndeterminateError))
      await soon(async () => (await soFar(asked)) !== 'pending')
      network.cut()
      network.restore()
      const next = await asked
      await released
      await connected(box)
      assert.equal(await third.mutex('key').tryAcquire(), undefined)
      await next.release()
    })
  })

  describe('P8 giving up leaves nothing behind', () => {
    for (const isHeld of [false, true])
      test(`a request for a ${isHeld ? 'held' : 'free'} lock whose connection breaks before the reply enters once`, async boxes => {
        const near = await boxes.open()
        const [box, network] = await boxes.overNetwork()
        const held = isHeld ? await near.mutex('key').acquire({ lease: LEASE }) : undefined
        network.swallow('replies')
        const asked = box.mutex('key').acquire({ lease: LEASE })
        const settled = asked.catch(() => undefined)
        await soon(async () => (isHeld ? (await waiters(near)) === 1 : near.mutex('key').isLocked()))
        network.cut()
        network.restore()
        await connected(box)
        if (held) {
          await until('it waits at most once', async () => (await waiters(near)) <= 1, ONCE)
          await held.release()
        }
        const grant = await settled
        if (grant) await grant.release()
        await nothingHeld(near)
      })
  })

  if (!keepsValues(fixture) || fixture.hasRecords) return
  describe('P13 commits are atomic and durable', () => {
    for (const [name, change] of Object.entries(changes)) {
      test(`${name}: a change whose connection breaks before the reply is not made again, nor reported as not made`, async boxes => {
        const near = await boxes.open()
        const [box, network] = await boxes.overNetwork()
        const report = await begun(box, change, () => network.swallow('replies'))
        const isSeen = await soon(async () => (await near.store('s').get('key'))?.value === 'mine')
        if (isSeen) await near.store('s').put('key', 'later')
        network.cut()
        network.restore()
        const isMade = await report()
        await connected(box)
        if (isSeen) assert.notEqual(isMade, 'not made')
        const value = (await near.store('s').get('key'))?.value
        if (isSeen) assert.equal(value, 'later')
        else if (isMade !== 'unknown') assert.equal(value, isMade === 'made' ? 'mine' : undefined)
        await nothingHeld(near)
      })

      test(`${name}: a change that is lost with its connection is not reported as made`, async boxes => {
        const near = await boxes.open()
        const [box, network] = await boxes.overNetwork()
        const report = await begun(box, change, () => network.swallow('requests'))
        await pause(50)
        network.cut()
        network.restore()
        const isMade = await report()
        await connected(box)
        const value = (await near.store('s').get('key'))?.value
        if (isMade !== 'unknown') assert.equal(value, isMade === 'made' ? 'mine' : undefined)
        await nothingHeld(near)
      })
    }
  })
}

/** Whether a condition soon holds. It may not if the engine needs the reply to a first step. */
function soon(condition: () => Promise<boolean>): Promise<boolean> {
  return until('it has happened', condition, SOON).then(
    () => true,
    () => false,
  )
}

async function waiters(box: Box): Promise<number> {
  const [report] = await locks(box, 'key', { exact: true })
  return report?.waiters.length ?? 0
}

/** Begins a change, and waits until its commit is sent. Returns a function that resolves with the report of the box. */
async function begun(box: Box, change: Change, lose: () => void): Promise<() => Promise<Report>> {
  let report!: Promise<Report>
  await new Promise<void>(resolve => {
    const losing = (): void => {
      lose()
      resolve()
    }
    report = reported(change(box.store('s'), losing))
  })
  return () => report
}

type Report = 'made' | 'not made' | 'unknown'

async function reported(change: Promise<unknown>): Promise<Report> {
  try {
    return (await change) === undefined ? 'not made' : 'made'
  } catch (error) {
    if (error instanceof IndeterminateError) return 'unknown'
    for (const type of [UnavailableError, ConflictError, LostError])
      if (error instanceof type) return 'not made'
    throw error
  }
}
