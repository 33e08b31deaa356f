import { expect, test } from 'vitest'
import { VirtualClock } from 'signalbox/limits'
import { OwnGrants, type RenewedInEntry } from '../src/own-grants.js'
import { lockRequest } from '../../../test/support/lock-request.js'

const LEASE = 6000
const KEY = 'grants/amy'

/** Creates the grants of the box `amy`, and the members that execute its calls. */
function ownGrants() {
  const clock = new VirtualClock(1000)
  const texts = new Map<string, string>()
  const entries: string[] = []
  /** Outcomes of the next changes of the sign, in order. */
  let fates: ('lost reply' | 'repeated' | 'slow')[] = []
  const store = {
    get: (key: string) => Promise.resolve(texts.get(key)),
    add: (key: string, text: string) => {
      const present = texts.get(key)
      if (present === undefined) texts.set(key, text)
      return Promise.resolve(present)
    },
    replace: (key: string, before: string, after: string) => {
      const isSame = texts.get(key) === before
      if (isSame) texts.set(key, after)
      const fate = fates.shift()
      if (fate === 'lost reply') return Promise.reject(new Error('the connection was lost'))
      if (fate === 'slow') clock.advance(1000)
      return Promise.resolve(isSame && fate !== 'repeated')
    },
    remove: () => Promise.resolve(),
  }
  const grants = new OwnGrants({
    store,
    clock,
    session: () => 'amy',
    keep: () => Promise.resolve(),
    repeat: work => work(),
  })
  const renew = (id: string, lease = LEASE): Promise<boolean> =>
    grants.renew({ type: 'renew', request: lockRequest(id), number: 1, lease }, sign => {
      entries.push(`${id} ${sign ?? 'alone'}`)
      return Promise.resolve<RenewedInEntry>(sign === undefined ? 'renewed' : 'covered')
    })
  return { clock, texts, entries, grants, renew, willBe: (...next: typeof fates) => void (fates = next) }
}

test('only the first renewal of a grant changes its entry, unless its lease is short', async () => {
  const { entries, renew } = ownGrants()
  for (let renewals = 0; renewals < 3; renewals++) {
    expect(await renew('amy.1')).toBe(true)
    expect(await renew('amy.2', 2000)).toBe(true)
  }
  expect(entries).toEqual(['amy.1 1', 'amy.2 alone', 'amy.2 alone', 'amy.2 alone'])
})

test('a sign whose reply was lost does not count for a later renewal', async () => {
  const { clock, entries, grants, renew, willBe, texts } = ownGrants()
  await renew('amy.1')
  clock.advance(1000)
  willBe('lost reply')
  await expect(renew('amy.1')).rejects.toThrow('the connection was lost')
  const arrived = texts.get(KEY)
  clock.advance(1000)
  expect(await renew('amy.1')).toBe(true)
  expect(grants.renewedAt(1)).toBe(3000)
  expect(texts.get(KEY)).not.toBe(arrived)
  expect(entries).toHaveLength(1)
})

test('a sign counts from before it is sent', async () => {
  const { clock, grants, renew, willBe } = ownGrants()
  await renew('amy.1')
  clock.advance(1000)
  willBe('slow')
  expect(await renew('amy.1')).toBe(true)
  expect(grants.renewedAt(1)).toBe(2000)
})

test('a sign that the client has repeated counts', async () => {
  const { clock, entries, grants, renew, willBe } = ownGrants()
  await renew('amy.1')
  clock.advance(1000)
  willBe('repeated')
  expect(await renew('amy.1')).toBe(true)
  expect(grants.renewedAt(1)).toBe(2000)
  expect(entries).toHaveLength(1)
})

test('after a change of a grant has failed, each grant is renewed in its entry again', async () => {
  const { entries, grants, renew } = ownGrants()
  await renew('amy.1')
  await renew('amy.2')
  await expect(grants.changes('amy.1', Promise.reject(new Error('unreachable')))).rejects.toThrow()
  await renew('amy.2')
  expect(entries).toEqual(['amy.1 1', 'amy.2 1', 'amy.2 2'])
})

test.each(['[1,1,1]', '[1,1,"x"]', '[7,1]', 'spoiled', undefined])(
  'a sign that others have changed to %s is not sent again',
  async text => {
    const { entries, renew, texts } = ownGrants()
    await renew('amy.1')
    if (text === undefined) texts.delete(KEY)
    else texts.set(KEY, text)
    expect(await renew('amy.1')).toBe(true)
    expect(entries).toEqual(['amy.1 1', 'amy.1 2'])
    expect(texts.get(KEY)).toMatch(/^\[2,\d+\]$/)
  },
)
