import { expect, test } from 'vitest'
import { columns } from '../../../src/cli/columns.js'
import { complaint, CommandError, statusOf } from '../../../src/cli/failure.js'
import { oneLine } from '../../../src/cli/one-line.js'
import { shortDuration } from '../../../src/duration.js'
import { InvalidArgumentError, UnavailableError } from '../../../src/index.js'

test('columns are as wide as their widest cell, and no line ends in blanks', () => {
  const lines = [
    ['KEY', 'AGE', 'LABEL'],
    ['a', '100ms', ''],
    ['longer', '5s', 'x'],
  ]
  expect(columns(lines, [1])).toBe(
    ['KEY       AGE  LABEL', 'a       100ms', 'longer     5s  x', ''].join('\n'),
  )
  expect(columns([], [])).toBe('')
})

test.each([
  [0, '0ms'],
  [0.4, '0ms'],
  [999, '999ms'],
  [999.6, '1.0s'],
  [1000, '1.0s'],
  [59_949, '59.9s'],
  [59_950, '1m 0s'],
  [60_000, '1m 0s'],
  [119_700, '2m 0s'],
  [3_599_400, '59m 59s'],
  [3_599_600, '1h 0m'],
  [7_800_000, '2h 10m'],
  [86_400_000, '1d 0h'],
  [277_200_000, '3d 5h'],
])('%d ms are shown as %s', (milliseconds, text) => {
  expect(shortDuration(milliseconds)).toBe(text)
})

test('control characters are shown and not obeyed', () => {
  expect(oneLine('a\nb\tc\u001b[31m\u0000\u0085d\u007fé✓')).toBe(
    'a\\nb\\tc\\u001b[31m\\u0000\\u0085d\\u007fé✓',
  )
})

test('an error is one line with its causes, and no stack', () => {
  const cause = new Error('EACCES: not allowed\nat all', { cause: new Error('not allowed') })
  const error = new UnavailableError("there can't be a socket; see the cause", { cause })
  expect(complaint(error)).toBe(
    "signalbox: there can't be a socket; see the cause: EACCES: not allowed\\nat all\n",
  )
  expect(complaint(new Error('alone', { cause: 'a text' }))).toBe('signalbox: alone\n')
})

test('a mistake of the user has another status than a failure', () => {
  expect(statusOf(new InvalidArgumentError('key takes text'))).toBe(2)
  expect(statusOf(new UnavailableError('the disk is full'))).toBe(69)
  expect(statusOf(new TypeError('a defect'))).toBe(1)
  expect(statusOf(new CommandError('no holder', 1))).toBe(1)
  expect(statusOf(new CommandError('say where', 2))).toBe(2)
})
