import { expect, test } from 'vitest'
import { Distance } from '../src/distance.js'
import { IndeterminateError } from 'signalbox'
import { VirtualClock } from 'signalbox/limits'
import type { EntryStore } from '../src/entry-store.js'
import { decodeKeyEntry } from '../src/entry-text.js'
import { KeyChanges, type EntryParts } from '../src/key-changes.js'
import { OpenEntry } from '../src/open-entry.js'
import { pass } from '../../../test/support/passing.js'

/** An entry in memory. `fate` decides for each call whether it is applied and whether its reply arrives. */
class Memory implements EntryStore {
  text: string | undefined
  readonly calls: string[] = []
  fate: (call: string) => 'done' | 'reply lost' | 'lost' | 'repeated' = () => 'done'

  get(): Promise<string | undefined> {
    return this.#call('get', () => this.text)
  }

  add(_key: string, text: string): Promise<string | undefined> {
    return this.#call('add', () => {
      const present = this.text
      this.text ??= text
      return present
    })
  }

  remove(): Promise<void> {
    return Promise.reject(new Error('not used'))
  }

  replace(_key: string, before: string, after: string): Promise<boolean> {
    return this.#call('replace', () => {
      if (this.text !== before) return false
      this.text = after
      return true
    })
  }

  async #call<T>(name: string, apply: () => T): Promise<T> {
    this.calls.push(name)
    const fate = this.fate(name)
    if (fate === 'lost') throw new Error('lost')
    if (fate === 'repeated') apply()
    const outcome = apply()
    await Promise.resolve()
    if (fate === 'reply lost') throw new Error('lost')
    return outcome
  }
}

function changesOn(
  store: EntryStore,
  clock: VirtualClock,
  by: string,
  extendFor = () => Promise.resolve(),
  locks: EntryParts['locks'] = {
    tryLock: () => Promise.resolve(false),
    unlockOnce: () => Promise.resolve(),
  },
): KeyChanges<OpenEntry> {
  let count = 0
  const parts: EntryParts = {
    store,
    clock,
    locks,
    floor: { get: () => 0, isValid: true },
    seen: () => undefined,
    repeat: work => work(),
    extendFor,
    outlives: () => false,
    nextMark: () => ({ by, count: ++count }),
    nextVersion: above => above + 1,
    failure: error => new IndeterminateError('unclear', { engine: 'test:', cause: error }),
    unclear: () => undefined,
    diedBefore: () => -Infinity,
    signs: { isCovered: () => false, seen: () => -Infinity },
    isAwaited: () => undefined,
    distance: new Distance(),
    look: () => undefined,
    grants: {
      renewedAt: () => -Infinity,
      hasEnded: () => true,
      end: () => Promise.resolve(),
    },
  }
  return new KeyChanges('k', OpenEntry, parts)
}

const put = (value: string) => ({
  run: (state: OpenEntry) => state.put('k', value, state.nextVersion()),
})
const valueIn = (store: Memory): string | undefined => decodeKeyEntry('k', store.text!).value

test('a job that joins others is not answered by a read that was sent before it came', async () => {
  const store = new Memory()
  const clock = new VirtualClock()
  const [one, other] = [changesOn(store, clock, 'one'), changesOn(store, clock, 'other')]
  await one.change(put('1'))
  await other.change(put('2'))
  let arrive = (): void => undefined
  const late = new Promise<void>(resolve => (arrive = resolve))
  const get = store.get.bind(store)
  store.get = () => get().then(text => late.then(() => text))
  const valueOf = (state: OpenEntry): string | undefined => state.values(['k'])[0]!.value
  const changed = one.change({ run: state => valueOf(state) === '1' && put('x').run(state) })
  await pass(clock, 1)
  expect(store.calls.at(-1)).toBe('get')
  await other.change(put('3'))
  const read = one.change({ run: valueOf })
  arrive()
  await changed
  expect(await read).toBe('3')
})

test.for(['add', 'replace'] as const)(
  'an applied %s that was repeated by the client or a member is not decided again',
  async name => {
    const store = new Memory()
    const one = changesOn(store, new VirtualClock(), 'one')
    if (name === 'replace') await one.change(put('0'))
    let times = 0
    store.fate = call => (call === name && ++times === 1 ? 'repeated' : 'done')
    let value = ''
    await one.change({ run: state => put((value += '1')).run(state) })
    expect(valueIn(store)).toBe('1')
  },
)

test.for(['add', 'replace'] as const)(
  'a lost %s is sent again, and one whose reply is lost is not',
  async name => {
    for (const fate of ['lost', 'reply lost'] as const) {
      const store = new Memory()
      const clock = new VirtualClock()
      const one = changesOn(store, clock, 'one')
      if (name === 'replace') await one.change(put('0'))
      let isLost = false
      store.fate = call => (call === name && !isLost ? ((isLost = true), fate) : 'done')
      store.calls.length = 0
      const changed = one.change(put('1'))
      await pass(clock, 1000)
      await changed
      expect(valueIn(store)).toBe('1')
      expect(store.calls.filter(call => call === name)).toHaveLength(fate === 'lost' ? 2 : 1)
    }
  },
)

test('a change whose reply is lost fails as indeterminate after five seconds if its outcome cannot be found out', async () => {
  const store = new Memory()
  const clock = new VirtualClock()
  const one = changesOn(store, clock, 'one')
  await one.change(put('1'))
  store.fate = () => 'lost'
  const failing = expect(one.change(put('2'))).rejects.toBeInstanceOf(IndeterminateError)
  await pass(clock, 6000)
  await failing
})

test('an entry that a hint brought is used for the next change, and a false one only costs a call', async () => {
  const store = new Memory()
  const clock = new VirtualClock()
  const [one, other] = [changesOn(store, clock, 'one'), changesOn(store, clock, 'other')]
  await one.change(put('1'))
  await other.change(put('2'))
  one.changed(store.text)
  store.calls.length = 0
  await one.change(put('3'))
  expect(store.calls).toEqual(['replace'])
  for (const text of ['hello', store.text!.replace('"lock":[', '"lock":[9')]) {
    one.changed(text)
    await one.change(put('4'))
    expect(valueIn(store)).toBe('4')
  }
})

test('what is known of an entry that other boxes change is read again before a change, but not what was just read', async () => {
  const store = new Memory()
  const clock = new VirtualClock()
  // Each attempt takes longer than a known state counts as fresh.
  const wait = (): Promise<void> => {
    clock.advanceTo(clock.now() + 200)
    return Promise.resolve()
  }
  const [one, other] = [changesOn(store, clock, 'one', wait), changesOn(store, clock, 'other')]
  await one.change(put('1'))
  await other.change(put('2'))
  const value = { run: (state: OpenEntry) => state.values(['k'])[0]!.value }
  expect(await one.change(value)).toBe('2')
  await other.change(put('3'))
  store.calls.length = 0
  await one.change(put('4'))
  expect(store.calls[0]).toBe('add')
  expect(await one.change(value)).toBe('4')
})

test('a change that can wait pauses when another box was faster, unless one comes that can not', async () => {
  for (const isJoined of [false, true]) {
    const store = new Memory()
    const clock = new VirtualClock()
    const [one, other] = [changesOn(store, clock, 'one'), changesOn(store, clock, 'other')]
    await one.change(put('1'))
    await other.change(put('2'))
    store.calls.length = 0
    const waiting = one.change({ ...put('3'), canWait: () => true })
    await pass(clock, 0)
    expect(store.calls).toEqual(['replace', 'get'])
    if (isJoined) await one.change(put('4'))
    else await pass(clock, 300)
    await waiting
    expect(valueIn(store)).toBe(isJoined ? '4' : '3')
    expect(store.calls).toEqual(['replace', 'get', 'get', 'replace', 'get'])
  }
})

test('a change that can wait lets a request with a reservation check in first', async () => {
  const store = new Memory()
  const clock = new VirtualClock()
  const one = changesOn(store, clock, 'one')
  const waiter = (id: string) => ({
    id,
    session: id,
    claims: [{ key: 'k', mode: 'exclusive' as const }],
    phase: 'reserved' as const,
    expires: 1000,
    lease: 1000,
    number: 0,
    label: undefined,
    since: 0,
  })
  await one.change({ run: state => state.append(waiter('first')) })
  store.calls.length = 0
  const changed = one.change({
    run: state => state.append({ ...waiter('second'), phase: 'waiting' }),
    canWait: () => true,
  })
  await pass(clock, 0)
  expect(store.calls).toEqual([])
  await pass(clock, 10)
  await changed
  expect(store.calls).toEqual(['get', 'replace'])
})

/**
 * Creates a box whose calls take `away` milliseconds, next to a box that changes the entry before each of them, unless
 * the entry is locked.
 */
async function besideFasterBox(away: number, lockedAfter = away) {
  const store = new Memory()
  const clock = new VirtualClock()
  const other = changesOn(store, clock, 'other')
  await other.change(put('0'))
  let isLocked = false
  let locks = 0
  let writes = 0
  const later = (time: number) => new Promise<void>(resolve => void clock.after(time, resolve))
  const call = async <T>(execute: () => Promise<T>): Promise<T> => {
    await later(away / 2)
    if (!isLocked) await other.change(put(`other ${++writes}`))
    const reply = await execute()
    await later(away / 2)
    return reply
  }
  const far: EntryStore = {
    get: () => call(() => store.get()),
    add: (key, text) => call(() => store.add(key, text)),
    replace: (key, before, after) => call(() => store.replace(key, before, after)),
    remove: () => store.remove(),
  }
  const one = changesOn(far, clock, 'one', undefined, {
    async tryLock() {
      locks++
      await later(lockedAfter - away / 2)
      isLocked = true
      await later(away / 2)
      return true
    },
    unlockOnce: () => Promise.resolve(),
  })
  return { clock, one, store, locks: () => locks }
}

test.each([true, false])(
  'a distant box locks a busy entry after it was slower once, also if its change can wait: %s',
  async canWait => {
    const { clock, one, store } = await besideFasterBox(400)
    const changed = one.change({ ...put('one'), ...(canWait && { canWait: () => true }) })
    // Four round trips: the box reads the unknown entry, its change fails, it locks and reads the entry, and its change
    // is applied.
    await pass(clock, 4 * 400)
    await changed
    expect(valueIn(store)).toBe('one')
  },
)

test('a near box whose change can wait gives the others time before it locks a busy entry', async () => {
  const { clock, one, store, locks } = await besideFasterBox(4)
  const changed = one.change({ ...put('one'), canWait: () => true })
  await pass(clock, 1900)
  expect(locks()).toBe(0)
  await pass(clock, 600)
  await changed
  expect(valueIn(store)).toBe('one')
})

test('an entry that others had locked is read again once this box has locked it', async () => {
  const { clock, one, store } = await besideFasterBox(400, 1000)
  const changed = one.change(put('one'))
  await pass(clock, 3 * 400 + 1000)
  expect(valueIn(store)).not.toBe('one')
  await pass(clock, 400)
  await changed
  expect(valueIn(store)).toBe('one')
})
