import { describe, expect, test } from 'vitest'
import { VirtualClock } from '../../../src/base/clock.js'
import type { Renew } from '../../../src/engine/contract.js'
import { ClosedError, LostError, UnavailableError } from '../../../src/base/errors.js'
import { claimSet } from '../../../src/core/claims.js'
import { Lease, type LeaseOwner } from '../../../src/core/lease.js'
import { LeaseKeeper } from '../../../src/core/lease-keeper.js'
import { ScriptedEngine, settle } from './scripted-engine.js'
import { lockRequest } from '../../support/lock-request.js'

const set = claimSet([{ key: 'key', mode: 'exclusive' }])

class Owner implements LeaseOwner {
  readonly lost: string[] = []
  readonly dropped: string[] = []
  keeper: LeaseKeeper | undefined

  leaseLost(hold: Lease): void {
    this.lost.push(hold.request.id)
  }

  dropSpare(hold: Lease): void {
    this.dropped.push(hold.request.id)
    hold.state = 'ended'
    this.keeper!.remove(hold)
  }
}

function start(engine = new ScriptedEngine()) {
  const clock = new VirtualClock(1000)
  const keeper = new LeaseKeeper(engine, clock, renewal => engine.submit(renewal))
  const owner = new Owner()
  owner.keeper = keeper
  const hold = (id: string, lease: number, renew = true): Lease => {
    const made = new Lease(lockRequest(id), set, 7, lease, clock.now() + lease, renew, owner)
    keeper.add(made)
    return made
  }
  return { clock, engine, keeper, owner, hold }
}

/** Gives the lease a user that is notified of its loss. */
function onLost(lease: Lease, lost: () => void): void {
  lease.users = [{ turn: 0, label: undefined, grantedAt: undefined, lost }]
}

describe('a lease in a session that ends by silence', () => {
  function startUntil(until: { at: number }) {
    return start(Object.assign(new ScriptedEngine(), { certainUntil: () => until.at }))
  }

  test('lasts as long as the session is certain, and does not come back', () => {
    const until = { at: 1200 }
    const { clock, keeper, owner, hold } = startUntil(until)
    const one = hold('one', 10_000)
    clock.advance(100)
    until.at = 1300
    clock.advance(199)
    expect(owner.lost).toEqual([])
    expect(keeper.left(one)).toBe(1)
    clock.advance(1)
    until.at = 2000
    expect(owner.lost).toEqual(['one'])
    expect(keeper.isLost(one)).toBe(true)
  })
})

describe('a lease that is renewed', () => {
  test('a renewal goes out after a third of the lease and counts from its sending', async () => {
    const { clock, engine, keeper, hold } = start()
    const one = hold('one', 300)
    clock.advance(99)
    expect(engine.asked).toEqual([])
    clock.advance(1)
    expect(engine.asked).toEqual([{ type: 'renew', request: lockRequest('one'), number: 7, lease: 300 }])
    clock.advance(40)
    engine.take('renew').answer(true)
    await settle()
    expect(one.deadline).toBe(1100 + 300)
    expect(keeper.isLost(one)).toBe(false)
    clock.advance(59)
    expect(engine.asked).toHaveLength(1)
    clock.advance(1)
    expect(engine.asked).toHaveLength(2)
  })

  test('leases that fall due at about the same time are renewed together', () => {
    const { clock, engine, hold } = start()
    hold('one', 300)
    clock.advance(10)
    hold('two', 300)
    clock.advance(30)
    hold('late', 300)
    clock.advance(60)
    expect(engine.asked.map(operation => (operation as Renew).request.id)).toEqual(['one', 'two'])
  })

  test('an engine that answers within the call gets no more renewals', () => {
    const engine = new ScriptedEngine()
    const asked: number[] = []
    const { clock, hold } = start(engine)
    engine.submit = (() => {
      asked.push(clock.now())
      return true
    }) as never
    const one = hold('one', 300)
    clock.advance(1000)
    expect(asked).toEqual([1100, 1200, 1300, 1400, 1500, 1600, 1700, 1800, 1900, 2000])
    expect(one.deadline).toBe(2300)
  })

  test('a lease that the engine has dropped is lost at once', async () => {
    const { clock, engine, keeper, owner, hold } = start()
    const one = hold('one', 300)
    let told = 0
    onLost(one, () => told++)
    clock.advance(100)
    engine.take('renew').answer(false)
    await settle()
    expect(one.loss).toBeInstanceOf(LostError)
    expect(one.loss).toMatchObject({ key: 'key', engine: 'scripted:' })
    expect(keeper.isLost(one)).toBe(true)
    expect(told).toBe(1)
    expect(owner.lost).toEqual(['one'])
    clock.advance(1000)
    expect(engine.asked).toHaveLength(1)
    expect(told).toBe(1)
  })

  test('an unclear answer keeps the old deadline, and the renewal is tried again', async () => {
    const { clock, engine, keeper, hold } = start()
    const one = hold('one', 300)
    clock.advance(100)
    engine.take('renew').fail(new UnavailableError('cut'))
    await settle()
    expect(one.deadline).toBe(1300)
    clock.advance(24)
    expect(engine.asked).toHaveLength(1)
    clock.advance(1)
    engine.take('renew').answer(true)
    await settle()
    expect(one.deadline).toBe(1125 + 300)
    expect(keeper.isLost(one)).toBe(false)
  })

  test('an answer for an earlier number is ignored', async () => {
    const { clock, engine, keeper, owner, hold } = start()
    const one = hold('one', 300)
    clock.advance(100)
    keeper.remove(one)
    one.number = 8
    one.deadline = 1400
    keeper.add(one)
    engine.take('renew').answer(false)
    await settle()
    expect(one.loss).toBeUndefined()
    expect(owner.lost).toEqual([])
  })
})

describe('the keeper', () => {
  test('a hint that a lease is lost makes the engine answer whether it is', async () => {
    for (const renew of [true, false]) {
      const { clock, engine, keeper, owner, hold } = start()
      const one = hold('one', 3000, renew)
      clock.advance(500)
      keeper.onLostHint('unknown')
      keeper.onLostHint('one')
      const lease = renew ? 3000 : 2500
      expect(engine.asked).toEqual([{ type: 'renew', request: lockRequest('one'), number: 7, lease }])
      engine.take('renew').answer(true)
      await settle()
      expect(one.loss).toBeUndefined()
      // Only a lease that is renewed gets a new deadline.
      expect(one.deadline).toBe(renew ? 4500 : 4000)
      clock.advance(100)
      keeper.onLostHint('one')
      engine.take('renew').answer(false)
      await settle()
      expect(one.loss?.message).toContain('released by force')
      expect(owner.lost).toEqual(['one'])
    }
  })

  test('many hints that a lease is lost cause ten questions a second, and the last one is not dropped', async () => {
    const { clock, engine, keeper, hold } = start()
    const one = hold('one', 3000, false)
    for (let sent = 0; sent < 1000; sent++) {
      keeper.onLostHint('one')
      if (sent % 2 === 1) clock.advance(1)
      if (engine.open > 0) engine.take('renew').answer(true)
      await settle()
    }
    expect(engine.asked.length).toBeGreaterThanOrEqual(5)
    expect(engine.asked.length).toBeLessThanOrEqual(6)
    keeper.onLostHint('one')
    clock.advance(100)
    engine.take('renew').answer(false)
    await settle()
    expect(one.loss?.message).toContain('released by force')
  })

  test('a question about a loss that fails is asked again', async () => {
    const { clock, engine, keeper, hold } = start()
    const one = hold('one', 1200, false)
    keeper.onLostHint('one')
    engine.take('renew').fail(new UnavailableError('out of reach'))
    await settle()
    clock.advance(100)
    engine.take('renew').answer(false)
    await settle()
    expect(one.loss?.message).toContain('released by force')
  })

  test('a loss carries the cause that the engine gives', () => {
    const { keeper, hold } = start()
    const one = hold('one', 300)
    const cause = new Error('the session has expired')
    keeper.onLostHint('one', cause)
    expect(one.loss?.message).toMatch(/ is no longer held: the session has expired$/)
    expect(one.loss?.cause).toBe(cause)
  })

  test('all leases end with the session, and no timer runs any more', () => {
    const { clock, engine, keeper, owner, hold } = start()
    const cause = new ClosedError('the box was closed')
    const one = hold('one', 300)
    hold('two', 500, false)
    keeper.loseAll(cause)
    keeper.stop()
    expect(owner.lost).toEqual(['one', 'two'])
    expect(one.loss?.cause).toBe(cause)
    clock.advance(1000)
    expect(engine.asked).toEqual([])
    expect(clock.nextAt()).toBeUndefined()
  })

  test('a listener of a loss may release other leases, and the rest are kept alive as before', () => {
    const { clock, engine, keeper, owner, hold } = start()
    const lapsing = hold('lapsing', 300, false)
    const other = hold('other', 300, false)
    const kept = hold('kept', 900)
    onLost(lapsing, () => keeper.remove(other))
    onLost(other, () => keeper.remove(lapsing))
    clock.advance(300)
    expect(owner.lost).toEqual(['lapsing'])
    expect(engine.asked).toHaveLength(1)
    engine.take('renew').answer(true)
    return settle().then(() => {
      expect(kept.deadline).toBe(1300 + 900)
      clock.advance(300)
      expect(engine.asked).toHaveLength(2)
    })
  })
})

describe('spare leases', () => {
  test('one is released when another request wants it, and is not reported as lost', () => {
    const { keeper, owner, hold } = start()
    const one = hold('one', 300)
    keeper.keepSpare(one)
    one.isUncontended = true
    keeper.contended('one')
    expect(owner.dropped).toEqual(['one'])
    expect(one.isUncontended).toBe(false)
    keeper.contended('one')
    expect(owner.dropped).toEqual(['one'])
    expect(owner.lost).toEqual([])
  })

  test('one is released instead of being renewed or lost', () => {
    for (const renew of [true, false]) {
      const { clock, engine, keeper, owner, hold } = start()
      const one = hold('one', 300, renew)
      keeper.keepSpare(one)
      clock.advance(300)
      expect(owner.dropped).toEqual(['one'])
      expect(engine.asked).toEqual([])
      expect(owner.lost).toEqual([])
    }
  })

  test('no more than 64 are kept', () => {
    const { keeper, owner, hold } = start()
    for (let index = 0; index < 100; index++) {
      const one = hold(`${index}`, 300)
      keeper.keepSpare(one)
    }
    expect(owner.dropped).toEqual(Array.from({ length: 36 }, (_, index) => `${index}`))
  })
})
