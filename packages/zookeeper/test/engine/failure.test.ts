import { ConnectionLossError, NotSentError, SessionExpiredError, UnreachableError } from '../../src/index.js'
import { expect, test } from 'vitest'
import { failureOf } from '../../src/engine/failure.js'

test('a request whose connection or session has ended may have been applied, unless it was not sent', () => {
  const what = ['create', '/node', 'host', 'the connection was lost'] as const
  const code = (cause: unknown): unknown => (failureOf(cause, 'zookeeper://host') as { code?: string }).code
  expect(code(new ConnectionLossError(...what))).toBe('INDETERMINATE')
  expect(code(new SessionExpiredError('the session has expired'))).toBe('INDETERMINATE')
  expect(code(new NotSentError(...what))).toBe('UNAVAILABLE')
  expect(code(new UnreachableError('no server answers'))).toBe('UNAVAILABLE')
})
