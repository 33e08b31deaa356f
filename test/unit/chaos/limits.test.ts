import { expect, test } from 'vitest'
import { checkRecovery } from '../../../apps/chaos/check/recovery.js'
import type { History } from '../../../apps/chaos/history.js'
import { recoveryLimits, silenceOf } from '../../../apps/chaos/limits.js'

const history: History = {
  lease: 1000,
  limits: {},
  requests: [{ who: '1.1', key: 'run:a', asked: 0, granted: 1 }],
  updates: [],
  counters: {},
  transfers: [],
  calls: [],
  faults: [],
  stalls: [],
  escapes: [],
}

test.each([
  ['redis://localhost', 1000],
  ['zookeeper://localhost', 10_000],
  ['zookeeper://localhost/app?sessionTimeout=2s', 2000],
  ['zookeeper://localhost/app?acl=open&sessionTimeout=2m', 120_000],
  ['zookeeper://localhost/app?sessionTimeout=1500', 1500],
  ['zookeeper://localhost/app?sessionTimeout=1.5s', 1500],
])('a grant of %s outlives a silence of %d ms with a lease of a second', (url, silence) => {
  expect(silenceOf(url, 1000)).toBe(silence)
})

test('a lease that is longer than the session counts', () => {
  expect(silenceOf('zookeeper://localhost?sessionTimeout=1s', 3000)).toBe(3000)
})

test.each([
  ['redis://localhost', 2000],
  ['postgres://user@localhost/db?signalbox_schema=app', 2000],
  ['hazelcast://localhost/dev', 4000],
])('what the dead hold on %s is free after %d ms with a lease of a second', (url, limit) => {
  expect(recoveryLimits(url, 1000, ['kill'], 'lease')).toEqual({ kill: limit })
})

test("others get a client's locks later when the engine still receives from that client", () => {
  const url = 'zookeeper://localhost?sessionTimeout=2s'
  const limits = recoveryLimits(url, 1000, ['hold requests', 'hold replies'], 'session timeout')
  expect(limits).toEqual({ 'hold requests': 3000, 'hold replies': 3000, 'hold replies, others': 5000 })
  const fault = { kind: 'hold replies', client: 1, at: 0, until: 3000, key: 'run:a', recovery: 10 }
  const late = (others: number) =>
    checkRecovery({
      ...history,
      limits,
      requests: [
        { who: '2.2', key: 'run:a', asked: 0, granted: others },
        { who: '1.1', key: 'run:b', asked: 0, granted: 3010 },
      ],
      faults: [{ ...fault, others }],
    }).map(({ message }) => message)
  expect(late(4900)).toEqual([])
  expect(late(5100)).toEqual([
    'recovery took 5100 ms after the fault "hold replies, others" at 0 ms, where 5000 ms are allowed',
  ])
})
