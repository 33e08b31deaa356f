import { expect, test } from 'vitest'
import { OwnRequests } from '../src/own-requests.js'
import { lockRequest } from '../../../test/support/lock-request.js'

test('a request that checks in is known again after its enqueue has failed, until it is gone', () => {
  const own = new OwnRequests()
  const request = lockRequest('amy.1')
  own.sent({ type: 'enqueue', request, lease: 1000, wait: Infinity })
  own.failed('amy.1')
  expect(own.get('amy.1')).toBeUndefined()
  const checkIn = { type: 'checkIn', request, lease: 1000, wait: Infinity } as const
  own.sent(checkIn)
  // A late cancel of the failed enqueue would otherwise take the grant.
  expect(own.get('amy.1')).toBe(request)
  own.done(checkIn, { state: 'gone' })
  expect(own.get('amy.1')).toBeUndefined()
})
