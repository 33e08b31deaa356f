import type { EntryListener, HazelcastJsonValue, IMap } from 'hazelcast-client'
import { expect, test } from 'vitest'
import { VirtualClock } from 'signalbox/limits'
import { EntryWatch } from '../src/entry-watch.js'

test('a watch reports each change of the value, also after the entry was deleted and created again', async () => {
  let listener: EntryListener<string, HazelcastJsonValue> = {}
  const map = {
    addEntryListener: (added: typeof listener) => {
      listener = added
      return Promise.resolve('id')
    },
  } as unknown as IMap<string, HazelcastJsonValue>
  const changed: string[] = []
  const watch = new EntryWatch(
    () => Promise.resolve(map),
    new VirtualClock(),
    key => changed.push(key),
  )
  await watch.watch('s/k')
  const event = (kind: 'added' | 'updated' | 'removed', text: string | null): void =>
    listener[kind]!({ value: text } as unknown as Parameters<NonNullable<typeof listener.added>>[0])
  const text = (stamp: number) => `{"stamp":${stamp},"version":0,"ids":[],"n":0}`
  event('added', text(5))
  event('updated', text(5))
  expect(changed).toHaveLength(1)
  event('updated', text(6))
  expect(changed).toHaveLength(2)
  event('removed', null)
  const before = changed.length
  event('added', text(7))
  expect(changed.length).toBeGreaterThan(before)
  event('updated', 'of another program')
  event('updated', text(8))
  expect(changed.length).toBeGreaterThanOrEqual(before + 3)
})

test('a watch listens to its keys with the client that replaces the last one', async () => {
  const listened: string[] = []
  const mapOf = (client: string) =>
    ({
      addEntryListener: (_: unknown, key: string) => {
        listened.push(`${client} ${key}`)
        return Promise.resolve('id')
      },
    }) as unknown as IMap<string, HazelcastJsonValue>
  let map = mapOf('first')
  const watch = new EntryWatch(
    () => Promise.resolve(map),
    new VirtualClock(),
    () => undefined,
  )
  await watch.watch('a')
  await watch.watch('b')
  await watch.again()
  expect(listened).toEqual(['first a', 'first b'])
  map = mapOf('second')
  await watch.again()
  expect(listened.slice(2)).toEqual(['second a', 'second b'])
})
