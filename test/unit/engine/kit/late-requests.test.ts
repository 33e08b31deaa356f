import { expect, test } from 'vitest'
import { VirtualClock } from '../../../../src/base/clock.js'
import { LateRequests } from '../../../../src/engine/kit/late-requests.js'
import type { Enqueue, LockRequest } from '../../../../src/engine/contract.js'

const request: LockRequest = { id: 's.1', session: 's', claims: [], label: undefined }
const enqueue: Enqueue = { type: 'enqueue', request, lease: 1000, wait: Infinity }

function place() {
  const clock = new VirtualClock()
  const own = new Set<string>()
  const cancelled: number[] = []
  const late = new LateRequests({
    clock,
    isOwn: id => own.has(id),
    cancel: ({ id }) => {
      expect(id).toBe(request.id)
      cancelled.push(clock.now() - began)
      return Promise.reject(new Error('unreachable'))
    },
  })
  const began = clock.now()
  return { clock, own, cancelled, late }
}

test('a lost request is cancelled again and again for a minute, also if that fails', () => {
  const { clock, cancelled, late } = place()
  late.lost(enqueue)
  late.lost(enqueue)
  for (let second = 0; second < 300; second++) clock.advance(1000)
  expect(cancelled).toEqual([1000, 3000, 7000, 15_000, 31_000, 63_000])
})

test('a lost request is not cancelled while it waits or holds', () => {
  const { clock, own, cancelled, late } = place()
  own.add(request.id)
  late.lost(enqueue)
  for (let second = 0; second < 5; second++) clock.advance(1000)
  own.delete(request.id)
  for (let second = 0; second < 5; second++) clock.advance(1000)
  expect(cancelled).toEqual([7000])
})

test('nothing is cancelled after the end', () => {
  const { clock, cancelled, late } = place()
  late.lost(enqueue)
  late.end()
  clock.advance(100_000)
  expect(cancelled).toEqual([])
})

test('a request whose cancellation failed is cancelled, although the session seems to have it', () => {
  const { clock, own, cancelled, late } = place()
  own.add(request.id)
  late.lost(enqueue)
  for (let second = 0; second < 5; second++) clock.advance(1000)
  late.givenUp(request)
  for (let second = 0; second < 15; second++) clock.advance(1000)
  expect(cancelled).toEqual([7000, 15_000])
})

test('of a lost change of turns, the grant and the next request are cancelled, unless the session has them', () => {
  const clock = new VirtualClock()
  const own = new Set<string>()
  const cancelled: string[] = []
  const late = new LateRequests({
    clock,
    isOwn: id => own.has(id),
    cancel: async ({ id }) => void cancelled.push(id),
  })
  const next = { ...request, id: 's.2' }
  own.add(next.id)
  late.lost({ type: 'extendOrYield', request, number: 1, next, lease: 1000, wait: Infinity })
  clock.advance(1000)
  expect(cancelled).toEqual([request.id])
  late.givenUp(next)
  clock.advance(2000)
  expect(cancelled).toEqual([request.id, request.id, next.id])
})
