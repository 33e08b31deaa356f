import { expect, test } from 'vitest'
import { jsonLine, table } from '../../../src/cli/ls.js'
import type { LockReport, Party } from '../../../src/index.js'

const holder: Party = {
  session: 'abc',
  host: 'host',
  pid: 7,
  label: 'billing',
  claim: { key: 'invoice:42', mode: 'exclusive' },
  token: 1773761422222221312n,
  age: 1234.5,
  expiresIn: 28_000.4,
}
const waiter: Party = { ...holder, session: 'def', label: undefined, token: undefined, age: 12.3 }

const reports: readonly LockReport[] = [
  { key: 'invoice:42', holders: [holder], waiters: [waiter, { ...waiter, session: 'ghi' }] },
  {
    key: 'gpu\n',
    holders: [{ ...holder, label: 'a\u001bb', claim: { key: 'gpu', mode: 'permits', permits: 2, max: 4 } }],
    waiters: [],
  },
]

test('the table has a line for each holder and each waiter, in their order', () => {
  expect(table(reports).split('\n')).toEqual([
    'KEY         STATE    CLAIM                    TOKEN   AGE  LEASE  LABEL     HOST  PID  SESSION',
    'invoice:42  held     exclusive  1773761422222221312  1.2s  28.0s  billing   host    7  abc',
    'invoice:42  waits 1  exclusive                       12ms  28.0s            host    7  def',
    'invoice:42  waits 2  exclusive                       12ms  28.0s            host    7  ghi',
    'gpu\\n       held     2 of 4     1773761422222221312  1.2s  28.0s  a\\u001bb  host    7  abc',
    '',
  ])
})

test('as JSON a token is text, exact to its last digit', () => {
  const line = jsonLine(reports[0]!)
  expect(line.endsWith('}\n')).toBe(true)
  expect(JSON.parse(line)).toEqual({
    key: 'invoice:42',
    holders: [{ ...holder, token: '1773761422222221312', age: 1235, expiresIn: 28_000 }],
    waiters: ['def', 'ghi'].map(session => ({
      session,
      host: 'host',
      pid: 7,
      claim: waiter.claim,
      age: 12,
      expiresIn: 28_000,
    })),
  })
})
