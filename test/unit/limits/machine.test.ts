import { expect, test, vi } from 'vitest'
import * as errors from '../../../src/base/errors.js'
import * as limiterErrors from '../../../src/limits/limiter-errors.js'
import * as waiter from '../../../src/limits/callers.js'
import * as callers from '../../../src/limits/remote/box-callers.js'
import * as options from '../../../src/limits/remote/box-limiter-options.js'
import * as machine from '../../../src/limits/remote/reservation-machine.js'
import { searchMachine } from '../../support/limits/machine-search.js'

const modules = { errors, limiterErrors, waiter, callers, options, machine }
const DEPTH = 3

test.each(['error', 'closed'] as const)('no order of events breaks a promise, with the policy %s', policy => {
  vi.spyOn(Math, 'random').mockReturnValue(0.5)
  const { broken, states } = searchMachine(modules, policy, DEPTH)
  expect(broken).toBeUndefined()
  expect(states).toBeGreaterThan(700)
})
