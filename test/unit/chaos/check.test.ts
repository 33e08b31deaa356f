import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { check } from '../../../apps/chaos/check/check.js'
import type { History } from '../../../apps/chaos/history.js'

const folder = fileURLToPath(new URL('../../fixtures/chaos/', import.meta.url))

function history(name: string): History {
  return JSON.parse(readFileSync(`${folder}${name}.json`, 'utf8')) as History
}

/** Recorded on Redis, and then spoiled in one place as a broken engine would: what is found, and nothing else. */
const bad: Readonly<Record<string, RegExp>> = {
  'bad-overlap': /^P1 .* both held run:\w+$/,
  'bad-release': /^P1 no order of grants and releases explains/,
  'bad-token-falls': /^P2 the token of .* fell/,
  'bad-token-twice': /^P2 a token of .* was given twice/,
  'bad-overtaken': /^P4 3\.3, .* before 2\.2/,
  'bad-fence': /^P2 .* wrote over what it had not read/,
  'bad-transfer-lost': /^P13 (.* both made change \d+ of|anna has 8 changes, and 9 were confirmed)/,
  'bad-transfer-doubled': /^P13 .* changes, more than the \d+ that were asked for/,
  'bad-money': /^P13 the accounts have 405 together/,
  'bad-stale-read': /^P13 no order of the calls explains/,
  'bad-compare-and-set': /^P13 no order of the calls explains/,
  'bad-write-lost': /^P13 no order of the calls explains/,
  'bad-recovery': /^P9 it took 1501 ms after the fault "cut"/,
}

test('all recorded histories are looked at', () => {
  const names = readdirSync(folder).map(name => name.replace('.json', ''))
  expect(names.sort()).toEqual([...Object.keys(bad), 'good-calm', 'good-faults'].sort())
})

test.each(['good-calm', 'good-faults'])('%s breaks no promise', name => {
  const { findings, undecided, grants, transfers } = check(history(name))
  expect({ findings, undecided }).toEqual({ findings: [], undecided: 0 })
  expect([grants > 20, transfers.applied > 10]).toEqual([true, true])
})

test.each(Object.entries(bad))('%s is rejected, for the right reason', (name, reason) => {
  const texts = check(history(name)).findings.map(({ promise, message }) => `${promise} ${message}`)
  expect(texts.filter(text => reason.test(text))).not.toEqual([])
  // What has fallen or overlaps has no order either.
  const others = texts.filter(text => !reason.test(text) && !/^P1 no order of grants/.test(text))
  expect(others).toEqual([])
})

test('without fencing a lost update is a figure and no finding', () => {
  const { updates, ...rest } = history('bad-fence')
  const plain = updates.filter(({ fenced }) => fenced).map(update => ({ ...update, fenced: false }))
  const { findings, unfenced } = check({ ...rest, updates: plain })
  expect(findings).toEqual([])
  expect(unfenced).toEqual({ accepted: plain.length, refused: 0, lost: 1 })
})

test('a fault that an interrupt broke off is no finding and no figure', () => {
  const { faults, ...rest } = history('bad-recovery')
  const { findings, recoveries } = check({
    ...rest,
    faults: faults.map(({ recovery: _unknown, ...fault }) => ({ ...fault, interrupted: true as const })),
  })
  expect({ findings, recoveries }).toEqual({ findings: [], recoveries: [] })
})

test('only orders that were compared are counted as such', () => {
  expect(check(history('bad-overtaken')).orders).toBe(1)
  const { requests, ...rest } = history('bad-overtaken')
  const unseen = requests.map(({ queued: _queued, ...request }) => request)
  expect(check({ ...rest, requests: unseen }).orders).toBe(0)
})

test('a recovery says what was measured: others at the key that was held, or anybody', () => {
  const faults = [
    { kind: 'kill', client: 1, at: 0, until: 10, key: 'run:a', recovery: 700 },
    { kind: 'kill', client: 1, at: 2000, until: 2010, recovery: 5 },
    { kind: 'hold replies', client: 2, at: 3000, until: 4000, key: 'run:a', recovery: 40, others: 1700 },
    { kind: 'hold replies', client: 2, at: 5000, until: 6000, recovery: 60 },
    { kind: 'lose replies', client: 2, at: 7000, until: 8000, key: 'run:a', recovery: 20 },
  ]
  const limits = { kill: 1500, 'hold replies': 1500, 'lose replies': 1500 }
  const { recoveries, findings } = check({ ...history('good-calm'), faults, limits })
  expect(recoveries.map(({ kind, faults: times, median }) => [kind, times, median])).toEqual([
    ['kill', 1, 700],
    ['kill, held nothing', 1, 5],
    ['hold replies', 2, 50],
    ['hold replies, others', 1, 1700],
    ['lose replies', 1, 20],
    ['lose replies, others', 1, Infinity],
  ])
  expect(findings.map(({ promise, message }) => `${promise} ${message}`)).toEqual([
    'P9 it took 1700 ms after the fault "hold replies, others" at 3000 ms, where 1500 ms are allowed',
    'P9 nothing went on after the fault "lose replies, others" at 7000 ms, where 1500 ms are allowed',
  ])
})

test('what escapes from the library is a finding', () => {
  const { findings } = check({ ...history('good-calm'), escapes: ['TypeError'] })
  expect(findings).toEqual([{ promise: 'P10', message: 'TypeError' }])
})
