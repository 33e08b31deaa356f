import { expect, test } from 'vitest'
import { columns } from '../../../src/cli/columns.js'
import { errorLine, CommandError, statusOf } from '../../../src/cli/failure.js'
import { waitsOf } from '../../../src/reports/index.js'
import { graphTable } from '../../../src/cli/graph.js'
import { jsonLine, table } from '../../../src/cli/ls.js'
import { printable, printableJson } from '../../../src/base/printable.js'
import { overview } from '../../../src/cli/top.js'
import { shortDuration } from '../../../src/base/duration.js'
import { InvalidArgumentError, UnavailableError, type LockReport, type Party } from '../../../src/index.js'

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

test('a table may have more lines than a call can have arguments', () => {
  const lines = Array.from({ length: 200_000 }, (_, number) => ['key', String(number)])
  expect(columns(lines, [1])).toContain('\nkey  199999\n')
})

test.each([
  [0.4, '0ms'],
  [999, '999ms'],
  [999.6, '1.0s'],
  [1000, '1.0s'],
  [59_950, '1m 0s'],
  [60_000, '1m 0s'],
  [3_599_600, '1h 0m'],
  [7_800_000, '2h 10m'],
  [277_200_000, '3d 5h'],
])('%d ms are shown as %s', (milliseconds, text) => {
  expect(shortDuration(milliseconds)).toBe(text)
})

test('control characters are shown and not obeyed', () => {
  expect(printable('a\nb\tc\u001b[31m\u0000\u0085d\u007fé✓')).toBe(
    'a\\nb\\tc\\u001b[31m\\u0000\\u0085d\\u007fé✓',
  )
})

test('text that turns the reading direction or hides itself is shown, emoji and letters are left alone', () => {
  const text = 'a\u202eb\u2066\u200b\ufeff\u2028\u{e0041}\ud800'
  const escapes = 'a\\u202eb\\u2066\\u200b\\ufeff\\u2028\\udb40\\udc41\\ud800'
  expect(printable(text)).toBe(escapes)
  expect(printable('👩‍🚒 é ü می‌خواهم')).toBe('👩‍🚒 é ü می‌خواهم')
  expect(JSON.parse(printableJson({ text: `${text}\u009b\n` }))).toEqual({ text: `${text}\u009b\n` })
  expect(printableJson(text.slice(0, -1))).toBe(JSON.stringify(escapes.slice(0, -6)).replaceAll('\\\\', '\\'))
})

test.each([
  ['ls', (reports: LockReport[]) => table(reports)],
  ['ls --json', (reports: LockReport[]) => reports.map(jsonLine).join('')],
  ['top', (reports: LockReport[]) => overview(reports).join('')],
  ['graph', (reports: LockReport[]) => graphTable(waitsOf(reports))],
] as const)('%s prints no key, label, host or session raw', (_, print) => {
  const odd = (what: string): string => `${what}\u001b[2J\u202e\u009b`
  const party = (session: string, token: bigint | undefined): Party => ({
    session: odd(session),
    host: odd('host'),
    pid: 1,
    label: session === 'one' ? odd('label') : undefined,
    claim: { key: 'key', mode: 'exclusive' },
    token,
    age: 1,
    expiresIn: 1,
  })
  const printed = print([
    {
      key: odd('key'),
      holders: [party('one', 1n)],
      waiters: [party('two', undefined), party('three', undefined)],
    },
  ])
  expect(printed).toContain('host\\u001b[2J\\u202e\\u009b')
  for (const raw of ['\u001b', '\u202e', '\u009b']) expect(printed).not.toContain(raw)
})

test('an error is one line with its causes, and no stack', () => {
  const cause = new Error('EACCES: not allowed\nat all', { cause: new Error('not allowed') })
  const error = new UnavailableError("there can't be a socket; see the cause", { cause })
  expect(errorLine(error)).toBe(
    "signalbox: there can't be a socket; see the cause: EACCES: not allowed\\nat all\n",
  )
  expect(errorLine(new Error('alone', { cause: 'a text' }))).toBe('signalbox: alone\n')
})

test('a mistake of the user has another status than a failure', () => {
  expect(statusOf(new InvalidArgumentError('key must be text'))).toBe(2)
  expect(statusOf(new UnavailableError('the disk is full'))).toBe(69)
  expect(statusOf(new TypeError('a defect'))).toBe(1)
  expect(statusOf(new CommandError('no holder', 1))).toBe(1)
  expect(statusOf(new CommandError('say where', 2))).toBe(2)
})
