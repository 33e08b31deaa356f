import { expect, test } from 'vitest'
import { limiterTable } from '../../../src/cli/ls.js'
import type { LimiterReport } from '../../../src/index.js'

const second = {
  limit: 20,
  per: 1000,
  window: 'sliding',
  timeZone: '',
  inForce: true,
  used: 3,
  remaining: 17,
  resetIn: 412,
} as const
const day = {
  ...second,
  per: 86_400_000,
  window: 'calendar',
  timeZone: 'Europe/Berlin',
  used: 20,
  remaining: 0,
} as const

test('the table has a line for each limit, and one for a limiter that is only paused', () => {
  const whole: LimiterReport = {
    name: 'api',
    key: undefined,
    pausedFor: 0,
    limits: [second, day, { ...second, unit: 'to\u001bkens' }],
    waiting: ['abc', 'def'],
  }
  const paused: LimiterReport = { ...whole, key: 'a\u001bb', pausedFor: 3_600_000, limits: [], waiting: [] }
  expect(
    limiterTable([whole, paused])
      .split('\n')
      .map(line => line.trimEnd()),
  ).toEqual([
    'LIMITER  KEY       LIMIT                                USED  FREE  RESET  PAUSED  WAITING',
    'api                20 per 1.0s                             3    17  412ms          abc def',
    'api                20 per 1d 0h calendar Europe/Berlin    20     0  412ms          abc def',
    'api                20 to\\u001bkens per 1.0s                3    17  412ms          abc def',
    'api      a\\u001bb                                                           1h 0m',
    '',
  ])
})

test('without limiters there is no table', () => {
  expect(limiterTable([])).toBe('')
})
