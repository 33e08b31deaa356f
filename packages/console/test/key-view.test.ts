import { expect, test } from 'vitest'
import { happenedTo, keyView, type Happened } from '../src/key-view.js'
import type { KeyView } from '../src/messages.js'
import type { Claim, LockReport, Party } from 'signalbox'

const exclusive: Claim = { key: 'k', mode: 'exclusive' }
const nobody = (): undefined => undefined
const SLACK = 750

/** Returns a party that requested the lock at `since`, as seen at `now`. */
function party(session: string, since: number, now: number, token?: bigint, expiresIn = 30_000): Party {
  return {
    session,
    host: 'vm',
    pid: 7,
    label: undefined,
    claim: exclusive,
    token,
    age: now - since,
    expiresIn,
  }
}

function report(holders: readonly Party[], waiters: readonly Party[] = []): LockReport {
  return { key: 'k', holders, waiters }
}

/** Returns the events of reports that are a second apart: `kind who`, with durations in seconds. */
function seen(...looks: readonly ((now: number) => LockReport)[]): string[] {
  let before: KeyView | undefined
  return looks.flatMap((look, index) => {
    const now = index * 1000
    const found = look(now)
    const isInUse = found.holders.length + found.waiters.length > 0
    const after = isInUse ? keyView(before, found, now, index === 0, SLACK) : undefined
    const events = index === 0 || (!before && !after) ? [] : happenedTo(before, after, now, nobody, SLACK)
    before = after
    return events.map(words)
  })
}

function words({ kind, who, from, waited, held }: Happened): string {
  return [
    kind,
    from?.session,
    who.session,
    waited !== undefined && `waited ${waited / 1000}`,
    held !== undefined && `held ${held / 1000}`,
  ]
    .filter(Boolean)
    .join(' ')
}

test('a look at the same requests returns the same object, although ages differ and replies are late', () => {
  const first = keyView(
    undefined,
    report([party('a', 0, 1000, 1024n)], [party('b', 500, 1000)]),
    1000,
    true,
    SLACK,
  )
  const later = report([party('a', 0, 2000, 1024n, 29_000)], [party('b', 500, 2000)])
  expect(keyView(first, later, 2200, false, SLACK)).toBe(first)
  const renewed = report([party('a', 0, 3000, 1024n, 30_000)], [party('b', 500, 3000)])
  const next = keyView(first, renewed, 3000, false, SLACK)
  expect(next).not.toBe(first)
  expect(next.waiters[0]).toBe(first.waiters[0])
  expect(next.holders[0]).toMatchObject({ since: 0, token: '1024', until: 33_000 })
})

test('since when a holder has the lock is known only if it was seen to get it', () => {
  const first = keyView(undefined, report([party('a', 0, 1000, 1n)]), 1000, true, SLACK)
  expect(first.holders[0]).not.toHaveProperty('heldSince')
  const next = keyView(first, report([party('b', 500, 2000, 2n)]), 2000, false, SLACK)
  expect(next.holders[0]).toMatchObject({ since: 500, heldSince: 2000 })
})

test('a grant, a hand-over and a release are seen, with how long each waited and held', () => {
  const none = () => report([])
  expect(
    seen(
      none,
      now => report([party('a', 500, now, 1n)], [party('b', 600, now)]),
      now => report([party('a', 500, now, 1n)], [party('b', 600, now)]),
      now => report([party('b', 600, now, 2n)]),
      none,
    ),
  ).toEqual(['granted a', 'handed over a b waited 2.4 held 2', 'released b held 1'])
})

test('a lease that ended is expired, and a waiter that is gone has left', () => {
  expect(
    seen(
      now => report([party('a', 0, now, 1n, 900)], [party('b', 0, now), party('c', 0, now)]),
      now => report([party('b', 0, now, 2n)], [party('c', 0, now)]),
      now => report([party('b', 0, now, 2n)]),
    ),
  ).toEqual(['expired a', 'granted b waited 1', 'left c waited 2'])
})

test('a downgrade is not a release', () => {
  const shared: Claim = { key: 'k', mode: 'shared' }
  const writer = party('a', 0, 0, 1n)
  const before = keyView(undefined, report([writer]), 0, true, SLACK)
  const after = keyView(before, report([{ ...writer, claim: shared, age: 1000 }]), 1000, false, SLACK)
  expect(after).not.toBe(before)
  expect(happenedTo(before, after, 1000, nobody, SLACK)).toEqual([])
})
