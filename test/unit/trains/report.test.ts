import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { DeadLetterFile } from '../../../apps/trains/dead-letters.js'
import { Log, logFile } from '../../../apps/trains/log/log.js'
import { compareLocations } from '../../../apps/trains/report/comparison.js'
import { bucketOf, Histogram } from '../../../apps/trains/report/histogram.js'
import { progressLine } from '../../../apps/trains/report/progress-display.js'
import { RateMeter } from '../../../apps/trains/report/rate-meter.js'
import { exitStatus, type Report } from '../../../apps/trains/report/report.js'
import { verdictOf } from '../../../apps/trains/board/verdict.js'
import { textReport } from '../../../apps/trains/report/text-report.js'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trains-'))
})
afterEach(() => {
  rmSync(folder, { recursive: true })
})

const counts = (created: number, deleted: number, arrived: number, departed: number) => ({
  created,
  deleted,
  arrived,
  departed,
})

const report: Report = {
  engine: 'file:./dir',
  input: 'timetable feed',
  processes: 4,
  days: 30,
  messages: 12_345,
  resumedAfter: 0,
  interrupted: false,
  seconds: 0.5,
  perSecond: 24_690,
  created: 1000,
  moved: 11_000,
  deleted: 300,
  ignored: 45,
  rejected: 0,
  rejections: [],
  repaired: 0,
  repairs: [],
  deadLettered: 0,
  redelivered: 0,
  alreadyApplied: 0,
  kills: [],
  lockWaitMs: { p50: 1.234, p99: null },
  serial: { created: 1000, moved: 11_000, deleted: 300, ignored: 45 },
  matchesSerial: true,
  differences: [],
  locations: { A: counts(1000, 0, 2000, 3000), B: counts(0, 300, 9000, 8000), C: counts(0, 0, 0, 0) },
  perWorker: [
    { worker: 1, messages: 12_345, replaced: 0, peakMemory: 98_765_432 },
    { worker: 2, messages: 0, replaced: 1, peakMemory: null },
  ],
  peakMemory: 1_234_567_890,
}

const KILL = {
  worker: 1,
  pid: 1,
  moment: 'at work' as const,
  afterMessages: 5,
  inFlight: 10,
  committed: 0,
  redelivered: 8,
  alreadyApplied: 3,
}

describe('the report as text', () => {
  test('has the busiest locations first, the totals and the verdict', () => {
    const lines = textReport(report, new Map([['B', 'Birch']]), 'dead.ndjson').split('\n')
    expect(lines).toEqual([
      'The busiest of 3 locations:',
      'location  name   created  arrived  departed  deleted     all',
      'B         Birch        0    9,000     8,000      300  17,300',
      'A                  1,000    2,000     3,000        0   6,000',
      'C                      0        0         0        0       0',
      '',
      '12,345 messages by 4 processes on file:./dir: 1,000 created, 11,000 moved, 300 deleted, 45 ignored, ' +
        '0 rejected, 0 dead-lettered',
      '24,690 messages/s in 0.5 s; waited for locks: p50 1.23 ms, p99 none',
      'peak memory: supervisor 1,235 MB, worker 99 MB',
      '',
      'Every location agrees with the serial result.',
      '',
    ])
  })

  test('names what went wrong', () => {
    const text = textReport(
      {
        ...report,
        rejected: 12,
        rejections: [
          { file: 'in', kind: 'not JSON', lines: 11, first: { line: 7, reason: 'not JSON' } },
          { file: 'in', kind: 'id', lines: 1, first: { line: 9, reason: '"id" is missing' } },
        ],
        repaired: 1,
        repairs: [{ file: 'stops.txt', kind: 'quotes', lines: 1, first: { line: 3, reason: 'a quote' } }],
        deadLettered: 2,
        resumedAfter: 1000,
        kills: [KILL, KILL],
        matchesSerial: false,
        differences: [{ location: 'B', expected: counts(1, 2, 3, 4), found: counts(1, 2, 3, 5) }],
      },
      new Map(),
      'dead.ndjson',
    )
    const ending = [
      'Repaired input faults: 1',
      '  stops.txt, line 3: a quote',
      '',
      'REJECTED INPUT LINES (their content is lost): 12',
      '  in, line 7, and 10 more: not JSON',
      '  in, line 9: "id" is missing',
      '',
    ]
    expect(text.split('\n').slice(-ending.length)).toEqual(ending)
    expect(text).toContain('dead letters: dead.ndjson')
    expect(text).toContain('1,000 messages were done before --resume')
    expect(text).toContain(
      '2 kills with 20 messages in flight; 16 were delivered again, 6 of them already committed',
    )
    expect(text).toContain('THE RESULT IS WRONG')
    expect(text).toContain(
      'B: expected created 1, arrived 3, departed 4, deleted 2; found created 1, arrived 3, departed 5, deleted 2',
    )
  })

  test('gives the exit status of the most serious problem', () => {
    expect(exitStatus(report, true)).toBe(0)
    expect(exitStatus({ ...report, rejected: 1 }, false)).toBe(0)
    expect(exitStatus({ ...report, rejected: 1 }, true)).toBe(5)
    expect(exitStatus({ ...report, rejected: 1, deadLettered: 1 }, true)).toBe(3)
    expect(exitStatus({ ...report, deadLettered: 1, interrupted: true }, true)).toBe(130)
    expect(exitStatus({ ...report, deadLettered: 1, interrupted: true, matchesSerial: false }, true)).toBe(1)
  })
})

describe('the comparison', () => {
  test('has each location that differs, and counts a missing one as zero', () => {
    const expected = new Map([
      ['B', counts(1, 1, 1, 1)],
      ['A', counts(0, 0, 2, 1)],
      ['zero', counts(0, 0, 0, 0)],
      ['lost', counts(0, 0, 1, 0)],
    ])
    const found = new Map([
      ['B', counts(1, 1, 1, 1)],
      ['A', counts(0, 0, 2, 2)],
      ['extra', counts(1, 0, 0, 0)],
    ])
    expect(compareLocations(expected, found)).toEqual([
      { location: 'A', expected: counts(0, 0, 2, 1), found: counts(0, 0, 2, 2) },
      { location: 'extra', expected: counts(0, 0, 0, 0), found: counts(1, 0, 0, 0) },
      { location: 'lost', expected: counts(0, 0, 1, 0), found: counts(0, 0, 0, 0) },
    ])
    expect(compareLocations(found, found)).toEqual([])
  })
})

describe('durations', () => {
  test('percentiles are accurate to a twentieth', () => {
    const histogram = new Histogram()
    for (let duration = 1; duration <= 1000; duration++) histogram.add(bucketOf(duration / 10))
    for (const [share, exact] of [
      [0.5, 50],
      [0.99, 99],
      [1, 100],
      [0, 0.1],
    ] as const) {
      const measured = histogram.percentile(share)!
      expect(measured).toBeGreaterThanOrEqual(exact * 0.9999)
      expect(measured).toBeLessThanOrEqual(exact * 1.05)
    }
    expect(new Histogram().percentile(0.5)).toBeUndefined()
    expect(bucketOf(0)).toBe(0)
  })

  test('rates are those of the last five seconds', () => {
    const meter = new RateMeter()
    expect(meter.rate(0, 0)).toBe(0)
    expect(meter.rate(1000, 500)).toBe(500)
    for (let second = 2; second <= 7; second++) meter.rate(second * 1000, 500 + (second - 1) * 100)
    expect(meter.rate(8000, 1200)).toBe(100)
  })

  test('the progress has a rate and the time left', () => {
    expect(progressLine(5, 10, 2.4, '2.0s')).toBe('5 of 10 messages, 2/s, 2.0s left')
    expect(progressLine(5, undefined, 2.4, '?')).toBe('5 messages, 2/s')
  })
})

describe('the log', () => {
  test('has a line of JSON per event, of its level and more serious ones', () => {
    const lines: string[] = []
    const log = new Log({ write: line => lines.push(line) }, 'info', { worker: 2 })
    log.debug('unheard')
    log.info('moved', { message: 'm"1', from: 'A', to: undefined })
    log.warn('bare')
    expect(lines.every(line => line.endsWith('}\n'))).toBe(true)
    const [first, second] = lines.map(line => JSON.parse(line) as Record<string, unknown>)
    expect(first).toEqual({
      time: expect.any(String),
      level: 'info',
      event: 'moved',
      message: 'm"1',
      from: 'A',
      worker: 2,
    })
    expect(second).toMatchObject({ level: 'warn', event: 'bare' })
    expect(Math.abs(Date.parse(String(first?.['time'])) - Date.now())).toBeLessThan(60_000)
    expect([log.writes('info'), log.writes('debug')]).toEqual([true, false])
  })

  test('is appended to its file', () => {
    const path = join(folder, 'log')
    for (const line of ['one\n', 'two\n']) logFile(path).write(line)
    expect(readFileSync(path, 'utf8')).toBe('one\ntwo\n')
  })
})

test('dead letters are stored with their reasons, and those of another run are deleted', () => {
  const file = new DeadLetterFile(join(folder, 'deep', 'dead.ndjson'))
  file.clear()
  const message = { id: '1', type: 'delete', train: 'T' }
  file.keep({ message, reason: 'no luck' })
  file.keep({ message, reason: 'again' })
  const letters = readFileSync(file.path, 'utf8')
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as unknown)
  expect(letters).toMatchObject([
    { reason: 'no luck', message },
    { reason: 'again', message },
  ])
  file.clear()
  expect(existsSync(file.path)).toBe(false)
})

describe('the verdict on the page', () => {
  const headline = 'Correct: no update was lost, and none was made twice.'
  const same =
    'All 3 locations have the same counts as in a run in one process, which applies one message after another.'

  test('says what was lost, and that a run was interrupted', () => {
    expect(verdictOf({ ...report, rejected: 1, deadLettered: 1200 })).toEqual({
      outcome: 'incomplete',
      headline,
      lines: [same, '1 input line rejected.', '1,200 messages dead-lettered.'],
    })
    expect(verdictOf({ ...report, interrupted: true })).toMatchObject({
      outcome: 'incomplete',
      headline: 'Correct so far: no update was lost, and none was made twice.',
      lines: [same, 'The run was interrupted; --resume continues it.'],
    })
  })
})
