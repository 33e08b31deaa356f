import { expect, test } from 'vitest'
import { VirtualClock } from '../../../src/base/clock.js'
import type { ReservePermits } from '../../../src/engine/limits/reservation.js'
import { IndeterminateError, UnavailableError } from '../../../src/base/errors.js'
import { BoxLimiters } from '../../../src/limits/remote/box-limiter.js'
import { lock, Server } from './deciding-server.js'
import { pass } from '../../support/passing.js'

/**
 * Refunds the permit of a limiter of one call an hour while the engine fails. Returns the later requests: their times
 * and numbers of returned permits.
 */
async function refunded(failure: Error, closeAfter?: number) {
  const clock = new VirtualClock(5000)
  const server = new Server(clock)
  const failures: Error[] = []
  const asked: { readonly at: number; readonly returns: number }[] = []
  const ask = (request: ReservePermits) => {
    const at = clock.now()
    asked.push({ at, returns: request.returns.reduce((sum, { n }) => sum + n, 0) })
    const error = failures.shift()
    return error
      ? Promise.reject(error)
      : Promise.resolve({ reserved: server.decide(request), earliest: at, latest: at })
  }
  const source = { clock, engine: 'test:', session: 'box', ask, lock }
  const limiter = new BoxLimiters(source).limiter('api', { limit: 1, per: '1h' })
  const permit = await limiter.acquire()
  await pass(clock, 100)
  asked.length = 0
  failures.push(failure, failure)
  permit.refund()
  if (closeAfter !== undefined) {
    await pass(clock, closeAfter)
    void limiter.close()
  }
  await pass(clock, 5000)
  const later = asked.map(({ at, returns }) => [at - 5100, returns])
  if (failures.length === 0 && closeAfter === undefined) await limiter.tryAcquire()
  return later
}

const LOCKED = new UnavailableError('locked')
const NO_REPLY = new IndeterminateError('no reply')

test.each<[string, Error, number | undefined, number[]]>([
  ['was certainly not applied are returned again every half second', LOCKED, undefined, [0, 500, 1000]],
  ['may have been applied count as used', NO_REPLY, undefined, [0]],
  ['was certainly not applied are returned twice more by a closed limiter', LOCKED, 100, [0, 100, 600]],
  ['may have been applied are not returned again by a closed limiter', NO_REPLY, 100, [0]],
])('permits whose return %s', async (_, failure, closeAfter, times) => {
  expect(await refunded(failure, closeAfter)).toEqual(times.map(at => [at, 1]))
})

test('a limiter that is closed during a call returns the permits that the call has not returned', async () => {
  const clock = new VirtualClock(5000)
  const server = new Server(clock)
  const failures: ((error: Error) => void)[] = []
  const returned: number[] = []
  let isDown = false
  const ask = (request: ReservePermits) => {
    if (isDown) return new Promise<never>((_, reject) => failures.push(reject))
    returned.push(request.returns.reduce((sum, { n }) => sum + n, 0))
    return Promise.resolve({ reserved: server.decide(request), earliest: clock.now(), latest: clock.now() })
  }
  const limiter = new BoxLimiters({ clock, engine: 'test:', session: 'box', ask, lock }).limiter('api', {
    limit: 1,
    per: '1h',
  })
  const permit = await limiter.acquire()
  await pass(clock, 100)
  returned.length = 0
  isDown = true
  permit.refund()
  await pass(clock, 0)
  const closing = limiter.close()
  await pass(clock, 0)
  isDown = false
  failures[0]!(new UnavailableError('locked'))
  await closing
  expect(returned).toEqual([1])
})
