import { expect, test } from 'vitest'
import { owned, placesOf, queueData, type OwnedRequest } from '../../../../src/engines/postgres/lock-row.js'
import type { Claim } from '../../../../src/engine/claim.js'

const info = { session: 's', host: 'here', pid: 7, label: 'box' }

function request(id: string, claims: readonly Claim[], label?: string): OwnedRequest {
  const state = { phase: 'waiting', expires: 1.5, lease: 5000, number: 0, since: 0.25 } as const
  return owned({ id, session: 's', claims, label, ...state }, info)
}

test('a queue is read as it was written', () => {
  const requests = [
    request('s.1', [{ key: 'k', mode: 'exclusive' }]),
    request('s.2', [{ key: 'k', mode: 'shared' }], 'own'),
    request('s.3', [{ key: 'k', mode: 'permits', permits: 2, max: 5 }]),
  ]
  expect(placesOf(queueData('k', requests))).toEqual(requests.map(one => ({ request: one })))
})

test('the row of the first key has a request for several keys, and the others name that key', () => {
  const both = request('s.1', [
    { key: 'a', mode: 'exclusive' },
    { key: 'b', mode: 'exclusive' },
  ])
  expect(placesOf(queueData('a', [both]))).toEqual([{ request: both }])
  expect(placesOf(queueData('b', [both]))).toEqual([{ id: 's.1', first: 'a' }])
})

test('an empty queue is empty text', () => {
  expect(queueData('k', [])).toBe('')
  expect(placesOf('')).toEqual([])
})

test('a request has the label of its box if it has none of its own', () => {
  expect(request('s.1', []).label).toBe('box')
  expect(request('s.1', [], 'own').label).toBe('own')
})

test('a label has U+FFFD for what is no text to PostgreSQL', () => {
  expect(request('s.1', [], 'a \0 b \ud83d c \u{1f682}').label).toBe('a \ufffd b \ufffd c \u{1f682}')
})
