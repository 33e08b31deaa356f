import { expect, test } from 'vitest'
import { mutexService, type MutexServiceOptions } from '../../../src/mutex-service/index.js'
import { FencedRegister } from '../../../apps/mutex/fenced-register.js'
import { InvalidArgumentError } from '../../../src/index.js'

const fit: MutexServiceOptions = { url: 'memory:', leaseSeconds: 1, waitMillis: 0 }

test.each([
  [undefined, 'mutexService needs { url, leaseSeconds, waitMillis }'],
  [{ ...fit, url: 5 }, 'url must be a string such as redis://localhost:6379, not 5'],
  [{ ...fit, leaseSeconds: 0.01 }, 'leaseSeconds must be a number from 0.02 to 86400, not 0.01'],
  [{ ...fit, leaseSeconds: NaN }, 'leaseSeconds must be a number from 0.02 to 86400, not NaN'],
  [{ ...fit, leaseSeconds: '5s' }, "leaseSeconds must be a number from 0.02 to 86400, not '5s'"],
  [{ ...fit, waitMillis: -1 }, 'waitMillis must be a number from 0, or Infinity, not -1'],
  [{ ...fit, renew: 'no' }, "renew must be true or false, not 'no'"],
  [{ ...fit, log: {} }, 'log must be a function, not {}'],
])('options that are unfit are refused before anything is opened: %j', (options, message) => {
  const make = (): unknown => mutexService(options as MutexServiceOptions)
  expect(make).toThrow(InvalidArgumentError)
  expect(make).toThrow(message)
})

test('waits without limit where the wait is Infinity', async () => {
  await using service = mutexService({ ...fit, waitMillis: Infinity })
  const first = await service.waitForSingleObject('key')
  const second = service.waitForSingleObject('key')
  await first.release()
  await (await second).release()
})

test('a register refuses a token that is smaller than one that wrote', () => {
  const register = new FencedRegister()
  expect(register.write('one', 5n)).toBe(true)
  expect(register.write('two', 5n)).toBe(true)
  expect(register.write('late', 4n)).toBe(false)
  expect(register.value).toBe('two')
})
