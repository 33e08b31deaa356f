import { describe, expect, test } from 'vitest'
import { VirtualClock } from '../../../src/base/clock.js'
import { Waiter, type Tenant } from '../../../src/base/lane.js'
import { Waiters } from '../../../src/base/waiters.js'
import { Random } from '../../simulation/random.js'

/** A waiter with its tenant, for messages. */
class Named extends Waiter {
  constructor(
    readonly tenant: Tenant | undefined,
    n: number,
  ) {
    super(n)
  }
}

function queue() {
  const waiters = new Waiters<Named>(new VirtualClock(), { timeOver: () => {}, aborted: () => {} })
  /** Adds waiters of a tenant. */
  const add = (
    count: number,
    name?: string,
    options: Partial<Tenant> & { n?: number; priority?: number } = {},
  ) => {
    const { weight = 1, group, n = 1, priority = 0 } = options
    const tenant = name === undefined ? undefined : { name, weight, group }
    for (let left = count; left > 0; left--) waiters.add(new Named(tenant, n), priority, tenant)
  }
  /** Gives the first waiters their permits. Returns their tenants. */
  const take = (count: number): string[] =>
    Array.from({ length: count }, () => {
      const first = waiters.first!
      waiters.take(first)
      return first.tenant?.name ?? '-'
    })
  return { waiters, add, take }
}

/** Counts equal items. */
function counted(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1
  return counts
}

describe('the waiters of tenants', () => {
  test('take turns, regardless of how many each has', () => {
    const { add, take } = queue()
    add(1000, 'flood')
    take(10)
    add(3, 'a')
    add(3, 'b')
    expect(take(9).join(' ')).toBe('flood a b flood a b flood a b')
    expect(counted(take(100))).toEqual({ flood: 100 })
  })

  test('get permits in proportion to the weights of the tenants', () => {
    const { add, take } = queue()
    add(1000, 'a', { weight: 3 })
    add(1000, 'b')
    add(1000, 'c', { weight: 0.5 })
    expect(counted(take(450))).toEqual({ a: 300, b: 100, c: 50 })
  })

  test('count by the permits that they want', () => {
    const { add, take } = queue()
    add(1000, 'small')
    add(1000, 'large', { n: 10 })
    expect(counted(take(110))).toEqual({ small: 100, large: 10 })
  })

  test('without a tenant count as those of one more', () => {
    const { add, take } = queue()
    add(100)
    add(100, 'a')
    expect(counted(take(60))).toEqual({ '-': 30, a: 30 })
  })

  test('of one tenant have their turns by priority, then in order of arrival', () => {
    const { waiters, add } = queue()
    add(2, 'a', { n: 1 })
    add(1, 'b', { n: 1 })
    add(1, 'a', { n: 2, priority: 1 })
    expect([...waiters].map(({ tenant, n }) => `${tenant!.name}${n}`)).toEqual(['b1', 'a2', 'a1', 'a1'])
  })

  test('of a group have the turns of one tenant, however many tenants it has', () => {
    const { add, take } = queue()
    for (let name = 0; name < 1000; name++) add(1, `of group ${name}`, { group: 'group' })
    add(100, 'alone')
    add(100, 'of group and heavy', { group: 'group', weight: 9 })
    const taken = take(100).map(name => (name.startsWith('of group') ? 'group' : name))
    expect(counted(taken)).toEqual({ group: 50, alone: 50 })
  })

  test('with the same name in different groups, or of a group, are those of different tenants', () => {
    const { waiters, add, take } = queue()
    add(10, 'x')
    add(10, 'x', { group: 'x' })
    add(10, 'x', { group: 'y' })
    expect(waiters.callersOf({ name: 'x', weight: 1, group: 'y' })).toBe(10)
    take(9)
    expect([undefined, 'x', 'y'].map(group => waiters.callersOf({ name: 'x', weight: 1, group }))).toEqual([
      7, 7, 7,
    ])
  })

  test('take the weight of their newest one', () => {
    const { add, take } = queue()
    add(1000, 'a')
    add(1000, 'b')
    take(10)
    add(1, 'a', { weight: 4 })
    expect(counted(take(100))).toEqual({ a: 80, b: 20 })
  })

  test('never wait forever for tenants that come once', () => {
    const { add, take } = queue()
    add(2, 'patient', { weight: 0.01 })
    const taken = []
    for (let name = 0; name < 1000; name++) {
      add(1, `new ${name}`)
      taken.push(...take(1))
    }
    expect(taken.filter(name => name === 'patient')).toHaveLength(2)
  })

  test('that leave take no turn, and their tenant is forgotten', () => {
    const { waiters, add, take } = queue()
    add(10_000, 'flood')
    add(10, 'a')
    for (const waiter of [...waiters]) if (waiter.tenant!.name === 'flood') waiters.remove(waiter)
    expect(waiters.callers).toBe(10)
    expect(take(10)).toEqual(Array<string>(10).fill('a'))
    expect(waiters.hasTenants).toBe(false)
  })

  test('are counted for a caller that comes', () => {
    const { waiters, add } = queue()
    add(100, 'flood')
    add(2, 'a')
    const tenant = (name: string, weight = 1, group?: string): Tenant => ({ name, weight, group })
    expect(waiters.before(0, tenant('flood'))).toEqual({ callers: 102, permits: 102 })
    expect(waiters.before(0, tenant('a'))).toEqual({ callers: 4, permits: 4 })
    expect(waiters.before(0, tenant('new'))).toEqual({ callers: 2, permits: 2 })
    expect(waiters.before(0, tenant('new', 1, 'group'))).toEqual({ callers: 2, permits: 2 })
    expect(waiters.before(0, tenant('new', 4))).toEqual({ callers: 0, permits: 0 })
    expect(waiters.before(1, tenant('a'))).toEqual({ callers: 1, permits: 1 })
  })

  test.each([1, 2, 3, 4, 5])(
    'come in the order that is shown, and a new one after those that are counted: %i',
    seed => {
      const random = new Random(seed)
      const { waiters, add } = queue()
      for (let step = 0; step < 400; step++) {
        const name = random.pick([undefined, 'a', 'b', 'c', 'd'])
        const group = name && random.pick([undefined, undefined, 'g', 'h'])
        const tenant = name === undefined ? undefined : { name, group, weight: random.pick([1, 2, 0.5]) }
        const before = waiters.before(0, tenant)
        add(1, name, { ...tenant, n: step < 200 ? 1 : random.pick([1, 1, 3]) })
        const shown = [...waiters]
        const own = shown.findLastIndex(waiter => same(waiter.tenant, tenant))
        expect(before.callers).toBeLessThanOrEqual(own)
        expect(shown).toHaveLength(waiters.callers)
        const all = random.pick([0, 1, 1, 1, 3])
        for (const expected of shown.slice(0, all)) {
          expect(waiters.first).toBe(expected)
          waiters.take(expected)
        }
        const leaving = random.pick([undefined, undefined, ...shown.filter(({ isQueued }) => isQueued)])
        if (leaving) waiters.remove(leaving)
      }
    },
  )
})

function same(one: Tenant | undefined, other: Tenant | undefined): boolean {
  return one?.name === other?.name && one?.group === other?.group
}
