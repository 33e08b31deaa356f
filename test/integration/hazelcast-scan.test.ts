import * as hazelcast from 'hazelcast-client'
import { afterAll, expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.js'
import { diagnose } from '../../src/index.js'
import { encodeKeyEntry } from '../../packages/hazelcast/src/entry-text.js'
import {
  emptyEntry,
  type KeyEntry,
  type KeyLocks,
  type KeyRequest,
} from '../../packages/hazelcast/src/key-entry.js'
import { Scan } from '../../packages/hazelcast/src/scan.js'
import { foreignClient } from '../support/hazelcast/foreign-map.js'
import { startHazelcast, TEST_CLUSTER } from '../support/servers/hazelcast.js'

const KEYS = 600
/** Number of concurrent searches, and number of times that they are repeated. */
const AT_ONCE = 8
const ROUNDS = 25

/** Returns the entry of a key in use, with a request or with a value. */
function textOf(turn: number): string {
  const request = `"n":1,"lock":[${turn},"${'x'.repeat(200)}"]`
  return turn % 2 === 0
    ? `{"stamp":0,"version":0,"ids":[],${request}}`
    : `{"stamp":${turn},"version":${turn},"ids":[],"n":0,"lock":[${turn}],"value":1}`
}

const server = await startHazelcast()
afterAll(() => server.kill())

/** Returns the map of a program's values, and a scan of it. */
async function scanned(
  name: string,
): Promise<{ map: hazelcast.IMap<string, hazelcast.HazelcastJsonValue>; scan: Scan }> {
  const client = await foreignClient(server)
  const map = await client.getMap<string, hazelcast.HazelcastJsonValue>(`${name}.values`)
  return { map, scan: new Scan(() => Promise.resolve(map), hazelcast, systemClock) }
}

test('a search misses no key whose entry is replaced meanwhile', { timeout: 60_000 }, async () => {
  const [{ map: written }, { scan }] = await Promise.all([scanned('searched'), scanned('searched')])
  const keys = Array.from({ length: KEYS }, (_, at) => `s/${String(at).padStart(3, '0')}`)
  const put = (key: string, turn: number) => written.set(key, new hazelcast.HazelcastJsonValue(textOf(turn)))
  await Promise.all(keys.map(key => put(key, 0)))
  const over = new AbortController()
  const writing = (async () => {
    for (let turn = 1; !over.signal.aborted; turn++) await Promise.all(keys.map(key => put(key, turn)))
  })()
  const search = { type: 'list', prefix: 's/', after: '', limit: KEYS } as const
  try {
    for (let round = 0; round < ROUNDS; round++)
      for (const found of await Promise.all(Array.from({ length: AT_ONCE }, () => scan.list(search))))
        expect(found).toEqual(keys)
  } finally {
    over.abort()
    await writing
  }
})

test(
  'free entries are found next to those of another program, which the doctor names',
  { timeout: 60_000 },
  async () => {
    const { map, scan } = await scanned('shop')
    const free = '{"stamp":1,"version":0,"ids":[],"n":0,"lock":[1,1]}'
    await map.set('free', new hazelcast.HazelcastJsonValue(free))
    await map.set('used', new hazelcast.HazelcastJsonValue(textOf(1)))
    await map.set('foreign', 'text' as unknown as hazelcast.HazelcastJsonValue)
    expect(await scan.unused(1000)).toEqual(['free'])
    expect((await scan.inUse('')).sort()).toEqual(['foreign', 'free', 'used'])
    const { findings } = await diagnose(`hazelcast://${server.address}/${TEST_CLUSTER}?map=shop`)
    expect(findings.find(({ id }) => id === 'foreign-entries')?.how).toMatch(
      /1 entry of shop\.values.*: foreign$/,
    )
  },
)

test(
  'entries are found that are no longer used, and those that sessions use',
  { timeout: 60_000 },
  async () => {
    const { map, scan } = await scanned('used')
    const now = Date.now()
    const put = (key: string, entry: KeyEntry) =>
      map.set(key, new hazelcast.HazelcastJsonValue(encodeKeyEntry(entry)))
    /** Returns an entry that was last used at this time. */
    const used = (at: number, locks: Partial<KeyLocks> = {}): KeyEntry => {
      const entry = emptyEntry()
      return { ...entry, locks: { ...entry.locks, turn: 1000, number: at * 1000, ...locks } }
    }
    const requestOf = (session: string): KeyRequest => ({
      id: `${session}.1`,
      session,
      claim: { key: 'k', mode: 'exclusive' },
      phase: 'waiting',
      ttl: 1000,
      heartbeat: `${session}.1`,
      lease: 1000,
      number: 0,
      since: now,
    })
    await put('old', used(now - 61_000))
    await put('young', used(now - 30_000))
    await put('created', used(0, { turn: now * 1000 }))
    await put('changed', { ...used(0), stamp: now * 1000 })
    await put('future', used(now + 3_600_000))
    await put('value', { ...used(0), version: 1, value: '1' })
    await put('ids', { ...used(0), ids: [['id', now + 60_000]] })
    await put('expired', { ...used(0), ids: [['id', now - 1000]] })
    await put('one', used(0, { requests: [requestOf('other'), requestOf('one')] }))
    await put('other', used(0, { requests: [requestOf('other')] }))
    await put('decided', used(0, { decided: [{ id: 'id', number: 0, changes: [] }] }))
    expect((await scan.unused(60_000)).sort()).toEqual(['expired', 'future', 'old'])
    expect((await scan.usedBy(['one', 'gone'])).sort()).toEqual(['decided', 'one'])
  },
)
