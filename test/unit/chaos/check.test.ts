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

test('what escapes from the library is a finding', () => {
  const { findings } = check({ ...history('good-calm'), escapes: ['TypeError'] })
  expect(findings).toEqual([{ promise: 'P10', message: 'TypeError' }])
})
