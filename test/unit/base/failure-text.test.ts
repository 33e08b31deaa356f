import { expect, test } from 'vitest'
import { failureText } from '../../../src/base/failure-text.js'

test('the causes of an error are shown that add something', () => {
  const refused = new Error('connection refused')
  const unreachable = new Error("can't reach the server: connection refused", { cause: refused })
  expect(failureText(unreachable)).toBe("can't reach the server: connection refused")
  expect(failureText(new Error('no lock', { cause: refused }))).toBe('no lock: connection refused')
})

test('an error that is its own cause is shown once', () => {
  const one = new Error('one')
  const two = new Error('two', { cause: one })
  one.cause = two
  expect(failureText(one)).toBe('one: two')
})

test('passwords are hidden', () => {
  expect(failureText(new Error('redis://anna:secret@host failed'))).toBe('redis://***@host failed')
})

test.each([
  ['a text', 'down', 'down'],
  ['nothing', undefined, 'undefined'],
  ['an error without a message', new RangeError(), 'RangeError'],
  ['an object without a prototype', Object.create(null), 'an object'],
  ['an error whose message is a number', Object.assign(new Error(), { message: 5 }), '5'],
])('%s that was thrown has a text', (_, thrown, text) => {
  expect(failureText(thrown)).toBe(text)
})
