import { expect, test } from 'vitest'
import { VirtualClock } from 'signalbox/limits'
import { Signs } from '../src/signs.js'

/** Creates the signs of boxes that share entries. The entries end only when the test deletes them. */
function signs() {
  const clock = new VirtualClock(1000)
  const texts = new Map<string, string>()
  let reads = 0
  const store = {
    put: async (key: string, text: string) => void texts.set(key, text),
    getAll: async (keys: readonly string[]) => {
      reads++
      return new Map(keys.flatMap(key => (texts.has(key) ? [[key, texts.get(key)!] as const] : [])))
    },
  }
  const one = new Signs(store, clock)
  const other = new Signs(store, clock)
  const look = async () => {
    clock.advance(1000)
    await one.lookUp(['other'])
  }
  return { clock, texts, one, other, look, reads: () => reads }
}

const waiter = { id: 'other.1', session: 'other' }

test('a request is covered as long as the signs of its session name it', async () => {
  const { one, other, look, clock } = signs()
  await other.send('other', ['other.1'])
  await look()
  expect(one.isCovered(waiter)).toBe(true)
  expect(one.seen('other')).toBe(clock.now())
  await other.send('other', ['other.2'])
  await look()
  expect(one.isCovered(waiter)).toBe(false)
})

test('a session was seen when its last sign was first found, also once that has ended', async () => {
  const { one, other, look, clock, texts } = signs()
  await other.send('other', ['other.1'])
  await look()
  const at = clock.now()
  await look()
  expect(one.seen('other')).toBe(at)
  texts.clear()
  await look()
  expect(one.seen('other')).toBe(at)
  expect(one.isCovered(waiter)).toBe(true)
})

test('a session is taken to live until it is looked up, and soon after', async () => {
  const { one, look, clock } = signs()
  expect(one.isCovered(waiter)).toBe(true)
  expect(one.seen('other')).toBe(clock.now())
  await look()
  expect(one.isCovered(waiter)).toBe(false)
  clock.advance(2500)
  expect(one.isCovered(waiter)).toBe(true)
  expect(one.seen('other')).toBe(clock.now())
})

test('a session is looked up at most once a second, and the own one never', async () => {
  const { one, look, reads } = signs()
  await one.send('one', ['one.1'])
  await look()
  await one.lookUp(['other', 'one'])
  expect(reads()).toBe(1)
  expect(one.isCovered({ id: 'one.1', session: 'one' })).toBe(true)
  expect(one.isCovered({ id: 'one.2', session: 'one' })).toBe(false)
})
