import { expect, test } from 'vitest'
import { VirtualClock } from '../../../../src/clock.js'
import { LateRequests } from '../../../../src/engine/kit/late-requests.js'
import type { LockRequest } from '../../../../src/engine/contract.js'

const request: LockRequest = { id: 's.1', session: 's', claims: [], label: undefined }

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
  late.lost(request)
  late.lost(request)
  for (let second = 0; second < 300; second++) clock.advance(1000)
  expect(cancelled).toEqual([1000, 3000, 7000, 15_000, 31_000, 63_000])
})

test('a lost request is not cancelled while it waits or holds', () => {
  const { clock, own, cancelled, late } = place()
  own.add(request.id)
  late.lost(request)
  for (let second = 0; second < 5; second++) clock.advance(1000)
  own.delete(request.id)
  for (let second = 0; second < 5; second++) clock.advance(1000)
  expect(cancelled).toEqual([7000])
})

test('nothing is cancelled after the end', () => {
  const { clock, cancelled, late } = place()
  late.lost(request)
  late.end()
  clock.advance(100_000)
  expect(cancelled).toEqual([])
})
