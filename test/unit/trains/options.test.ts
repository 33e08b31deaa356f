import { readFileSync } from 'node:fs'
import { CommanderError } from 'commander'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { readOptions } from '../../../apps/trains/options.js'
import { EXIT } from '../../../apps/trains/report/exit.js'

let complaints = ''
beforeEach(() => {
  complaints = ''
  vi.spyOn(process.stderr, 'write').mockImplementation(text => {
    complaints += String(text)
    return true
  })
  vi.spyOn(process.stdout, 'write').mockImplementation(() => true)
})
afterEach(() => {
  vi.restoreAllMocks()
})

/** Returns the message about a rejected command line. */
function refusal(...args: string[]): string {
  expect(() => readOptions(args)).toThrow(CommanderError)
  return complaints
}

describe('the command line', () => {
  test('needs no options: four workers run the bundled timetable for thirty days', () => {
    expect(readOptions([])).toEqual({
      engine: 'file:./.signalbox/trains',
      processes: 4,
      input: {
        kind: 'timetable',
        path: expect.stringMatching(/apps\/trains\/data\/caltrain-gtfs$/),
        date: undefined,
        locations: 'stop',
        days: 30,
        speed: undefined,
      },
      kill: 0,
      dwell: 0,
      wait: true,
      limits: { lockWait: 30_000, lease: 30_000, lockTries: 1, attempts: 3 },
      engineWait: 30_000,
      use: 'together',
      deadLetters: './.signalbox/dead-letters.ndjson',
      logLevel: 'warn',
    })
  })

  test('accepts all options', () => {
    const line =
      '--engine redis://h --processes 8 --days 2 --gtfs feed.zip --date 20160704 --by station --speed 1.5 --kill 20 ' +
      '--lock-wait 10ms --lease 2m --lock-tries 10 --attempts 3 --engine-wait 10s --dead-letters d --resume --strict --json j --log l --unsafe-no-locks'
    expect(readOptions(line.split(' '))).toEqual({
      engine: 'redis://h',
      processes: 8,
      input: {
        kind: 'timetable',
        path: 'feed.zip',
        date: '20160704',
        locations: 'station',
        days: 2,
        speed: 1.5,
      },
      kill: 20,
      dwell: 0,
      wait: true,
      limits: { lockWait: 10, lease: 120_000, lockTries: 10, attempts: 3 },
      engineWait: 10_000,
      use: 'unlocked',
      resume: true,
      strict: true,
      json: 'j',
      deadLetters: 'd',
      log: 'l',
      logLevel: 'info',
    })
    expect(readOptions(['--lock-wait', '10ms']).use).toBe('alone')
    expect(readOptions(['--lock-wait', '1s']).use).toBe('together')
    expect(readOptions(['--messages', '-', '--log-level', 'debug'])).toMatchObject({
      input: { kind: 'messages', path: '-' },
      logLevel: 'debug',
    })
  })

  test('with --watch, runs a day at a pace at which a person sees the locks, and kills workers', () => {
    expect(readOptions(['--watch'])).toMatchObject({
      watch: 0,
      wait: true,
      input: { days: 1, speed: 600 },
      kill: 4,
      dwell: 250,
      use: 'alone',
    })
    expect(readOptions(['--watch', '8080', '--no-wait', '--kill', '0'])).toMatchObject({
      watch: 8080,
      wait: false,
      input: { days: 1, speed: 600 },
      kill: 0,
    })
    expect(readOptions(['--watch', '--speed', '1800'])).toMatchObject({
      input: { days: 1, speed: 1800 },
      kill: 4,
    })
    // Without a speed, days are run as fast as possible.
    expect(readOptions(['--watch', '--days', '24'])).toMatchObject({
      input: { days: 24, speed: undefined },
      kill: 0,
      dwell: 0,
      use: 'together',
    })
    expect(readOptions(['--watch', '--messages', '-'])).toMatchObject({ kill: 0, dwell: 0, use: 'together' })
    expect(readOptions(['--watch', '--unsafe-no-locks'])).toMatchObject({ dwell: 250, use: 'unlocked' })
  })

  const refused: readonly (readonly [readonly string[], string])[] = [
    [['--processes', '0'], 'integer from 1 to 256'],
    [['--speed', '0'], 'a number greater than 0'],
    [['--date', '20260230'], 'a date such as 20160704'],
    [['--by', 'town'], 'Allowed choices are stop, station'],
    [['--lease', '2'], 'a duration such as 10ms, 5s or 2m'],
    [['--lease', '1ms'], 'from 20 ms to 43200000 ms'],
    [['--engine', 'redis'], 'a URL such as file:./dir'],
    [['--engine', 'memory:'], 'Worker processes do not share memory'],
    [['--log-level', 'loud'], 'Allowed choices are error, warn, info, debug'],
    [['--messages', 'm', '--days', '3'], "--messages can't be combined with --days"],
    [['--fast'], "unknown option '--fast'"],
    [['feed.zip'], 'too many arguments'],
  ]
  test('has the documented exit statuses', () => {
    const page = readFileSync('docs/trains.md', 'utf8')
    const rows = [...page.matchAll(/^\| (\d+) \| (.*) \|$/gm)].map(([, status, text]) => [status, text])
    expect(rows).toEqual(Object.values(EXIT).map(({ status, text }) => [String(status), text]))
  })

  test('shows no password', () => {
    expect(refusal('--engine', 'REDIS://me:secret@host')).not.toContain('secret')
  })

  test.each(refused)('refuses %j', (args, complaint) => {
    expect(refusal(...args)).toContain(complaint)
  })
})
