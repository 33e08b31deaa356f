import { expect, test } from 'vitest'
import { VirtualClock } from '../../../../src/clock.js'
import type { Claim } from '../../../../src/engine/claim.js'
import { OwnRequests } from '../../../../src/engines/hazelcast/own-requests.js'
import {
  emptyTable,
  type RequestRecord,
  type TableRecord,
} from '../../../../src/engines/hazelcast/table-record.js'

function recordOf(...requests: RequestRecord[]): TableRecord {
  return { ...emptyTable(), requests }
}

function request(id: string, session: string, ...claims: Claim[]): RequestRecord {
  const phase = session === 'own' ? 'held' : 'waiting'
  return { id, session, claims, phase, ttl: 1000, heartbeat: 'beat', lease: 1000, number: 1, since: 0 }
}

const grant = request('grant', 'own', { key: 'a', mode: 'exclusive' }, { key: 'b', mode: 'exclusive' })
const other = request('other', 'foreign', { key: 'b', mode: 'shared' })

function followed(...requests: RequestRecord[]) {
  const clock = new VirtualClock()
  const contended: string[] = []
  const own = new OwnRequests(clock, id => contended.push(id))
  own.join('own')
  own.follow(recordOf(...requests))
  return { clock, own, contended }
}

test('a box is notified when another request claims a key of an uncontended grant', () => {
  const { own, contended } = followed(grant)
  expect(own.watchUncontended('grant', 5)).toBe(true)
  own.follow(recordOf(grant))
  expect(contended).toEqual([])
  own.follow(recordOf(grant, other))
  expect(contended).toEqual(['grant'])
})

test('a box is notified when the time ends for which a grant was certainly uncontended', () => {
  const { clock, own, contended } = followed(grant)
  expect(own.watchUncontended('grant', 5)).toBe(true)
  clock.advance(4)
  expect(own.watchUncontended('grant', 5)).toBe(true)
  clock.advance(4)
  expect(contended).toEqual([])
  clock.advance(1)
  expect(contended).toEqual(['grant'])
})

test('a grant is contended by another request for one of its keys, or when it shares a key', () => {
  expect(followed(grant, other).own.watchUncontended('grant', 5)).toBe(false)
  const sharing = request('grant', 'own', { key: 'a', mode: 'exclusive' }, { key: 'b', mode: 'shared' })
  expect(followed(sharing).own.watchUncontended('grant', 5)).toBe(false)
  expect(followed().own.watchUncontended('grant', 5)).toBe(false)
})
