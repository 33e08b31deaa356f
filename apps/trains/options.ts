import { join } from 'node:path'
import { InvalidArgumentError, Option, type Command } from 'commander'
import { applicationCommand, integer } from '../command-line.js'
import { clonePath } from './clone-path.js'
import type { TimetableChoice } from './gtfs/gtfs-source.js'
import type { LocationKind } from './gtfs/stops.js'
import { weekdayOf } from './gtfs/service-days.js'
import { ID_RETENTION } from './run-store.js'
import { EXIT } from './report/exit.js'
import type { StoreUse } from './tracker.js'
import { LOG_LEVELS, type LogLevel } from './log/log.js'
import type { Limits } from './worker/message-processor.js'

/** Options that are used as given. */
interface PlainOptions {
  readonly engine: string
  readonly processes: number
  /** Maximum time to wait for an unreachable engine, in milliseconds. */
  readonly engineWait: number
  readonly resume?: boolean
  /** The port of the page that shows the run; 0 for a free port, undefined for no page. */
  readonly watch?: number
  /** Whether a run with a page begins only when a viewer opens the page. */
  readonly wait: boolean
  /** Whether a rejected input line changes the exit status. */
  readonly strict?: boolean
  readonly json?: string
  readonly deadLetters: string
  /** The file for the log; undefined for standard error. */
  readonly log?: string
}

export interface Settings extends PlainOptions {
  /** The input: a timetable, or messages as lines of JSON (`-` for standard input). */
  readonly input:
    | ({
        readonly kind: 'timetable'
        /** Speed relative to the timetable; undefined: as fast as possible. */
        readonly speed: number | undefined
      } & TimetableChoice)
    | { readonly kind: 'messages'; readonly path: string }
  readonly kill: number
  /** Minimum time that a message keeps its locks for viewers, in milliseconds; 0: only as long as it needs them. */
  readonly dwell: number
  readonly limits: Limits
  readonly use: StoreUse
  readonly logLevel: LogLevel
}

/** The default timetable, that of Caltrain in 2016. */
const BUNDLED_FEED = join(clonePath, 'apps/trains/data/caltrain-gtfs')

/** Minimum wait for locks with which messages share their locks, in milliseconds. */
const SHORT_WAIT = 1000

/**
 * Maximum duration of an option, in milliseconds. Shorter than `ID_RETENTION`, because a message may be delivered again
 * after that duration.
 */
const LONGEST = ID_RETENTION / 2

/** Default settings for a viewer: one day, ten minutes of the timetable in each second, and some kills of workers. */
const SHOW = { days: 1, speed: 600, kill: 4 }

/** Time that a train keeps its locks for a viewer, in seconds of the timetable. */
const TIMETABLE_DWELL = 150
/** Maximum time that a train keeps its locks for a viewer, in milliseconds. */
const MAX_DWELL = 1000
/** Minimum time that a viewer can see, in milliseconds. A shorter one becomes 0. */
const MIN_DWELL = 20

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

interface Parsed extends PlainOptions, Limits {
  readonly days?: number
  readonly gtfs?: string
  readonly messages?: string
  readonly date?: string
  readonly by?: LocationKind
  readonly speed?: number
  readonly kill?: number
  readonly unsafeNoLocks?: boolean
  readonly logLevel?: LogLevel
}

const statuses = Object.values(EXIT)
  .map(({ status, text }) => `  ${String(status).padEnd(5)}${text}`)
  .join('\n')

const AFTER_HELP = `
Exit status:
${statuses}

The classic limits are --lock-wait 10ms --lease 2m --lock-tries 10 --attempts 3.`

export function trainsCommand(): Command {
  return applicationCommand('signalbox trains')
    .description(
      'Runs the trains of a timetable through shared locations: worker processes apply its messages under locks, ' +
        'and the result is compared with that of a serial run.',
    )
    .option('--engine <url>', 'where locks and state are kept', engineUrl, 'file:./.signalbox/trains')
    .option('--processes <number>', 'number of worker processes', integer(1, 256), 4)
    .option(
      '--days <number>',
      'days, each with new trains (default: 30, with --watch 1)',
      integer(1, 100_000),
    )
    .option('--gtfs <path>', "timetable: folder or zip archive of a GTFS feed (default: Caltrain's, bundled)")
    .option('--date <date>', 'only the trips on this date, such as 20160704 (default: all trips)', date)
    .addOption(new Option('--by <kind>', 'what a location is (default: "stop")').choices(['stop', 'station']))
    .option(
      '--speed <factor>',
      'run in real time, sped up by this factor (default: unpaced, with --watch 600)',
      positive,
    )
    .option('--messages <file>', 'messages instead, one JSON object per line; - for standard input')
    .option(
      '--kill <number>',
      'kill this number of workers while they work (default: 0, with --watch 4)',
      integer(0, 100_000),
    )
    .addOption(lasting('--lock-wait', 'how long a try waits for locks; below 1s messages share no locks', 0))
    .addOption(lasting('--lease', 'how long locks outlive a worker that stopped', 20))
    .option('--lock-tries <number>', 'tries to acquire the locks in one attempt', integer(1, 10_000), 1)
    .option('--attempts <number>', 'attempts before a message is dead-lettered', integer(1, 10_000), 3)
    .addOption(lasting('--engine-wait', 'how long to wait for an unreachable engine', 0))
    .option('--dead-letters <file>', 'file for dead-lettered messages', './.signalbox/dead-letters.ndjson')
    .addOption(
      new Option('--watch [port]', 'serve a page on 127.0.0.1 that shows the run (default: on a free port)')
        .argParser(integer(0, 65_535))
        .preset('0'),
    )
    .option('--no-wait', 'with --watch, begin before a viewer opens the page')
    .option('--resume', 'continue the last run on this engine, with the same input')
    .option('--strict', 'exit with status 5 if an input line was rejected')
    .option('--json <file>', 'write the report to this file')
    .option('--log <file>', 'append the log to this file (default: standard error)')
    .addOption(
      new Option(
        '--log-level <level>',
        'lowest level (default: "info" with --log, otherwise "warn")',
      ).choices(LOG_LEVELS),
    )
    .option('--unsafe-no-locks', 'use no locks and no version checks, to see the comparison fail')
    .addHelpText('after', AFTER_HELP)
}

/**
 * Parses the arguments of the command line.
 * @throws CommanderError if they are invalid, after printing the reason to standard error; also after printing help.
 */
export function readOptions(args: readonly string[]): Settings {
  const trains = trainsCommand()
  const parsed = trains.parse(args, { from: 'user' }).opts<Parsed>()
  const { days, gtfs, messages, date: day, by, speed, kill, unsafeNoLocks, logLevel, ...rest } = parsed
  if (messages !== undefined) {
    for (const [name, value] of Object.entries({ gtfs, date: day, by, speed, days })) {
      if (value === undefined) continue
      trains.error(`error: --messages can't be combined with --${name}, which is for timetables`)
    }
  }
  const { lockWait, lease, lockTries, attempts, ...plain } = rest
  const isWatched = plain.watch !== undefined && messages === undefined
  const show = isWatched && days === undefined ? SHOW : undefined
  const pace = speed ?? show?.speed
  const dwell = isWatched && pace !== undefined ? dwellAt(pace) : 0
  return {
    ...plain,
    input:
      messages === undefined
        ? {
            kind: 'timetable',
            path: gtfs ?? BUNDLED_FEED,
            date: day,
            locations: by ?? 'stop',
            days: days ?? show?.days ?? 30,
            speed: pace,
          }
        : { kind: 'messages', path: messages },
    kill: kill ?? show?.kill ?? 0,
    dwell,
    limits: { lockWait, lease, lockTries, attempts },
    // Messages that share locks wait for all of them, so with a short wait, each message takes its own locks. For
    // viewers, each does so too, to show which train has which lock.
    use: unsafeNoLocks ? 'unlocked' : lockWait < SHORT_WAIT || dwell > 0 ? 'alone' : 'together',
    logLevel: logLevel ?? (plain.log === undefined ? 'warn' : 'info'),
  }
}

function dwellAt(speed: number): number {
  const dwell = Math.min((TIMETABLE_DWELL * 1000) / speed, MAX_DWELL)
  return dwell < MIN_DWELL ? 0 : dwell
}

function engineUrl(text: string): string {
  if (!/^[a-z][a-z0-9+.-]*:/.test(text))
    throw new InvalidArgumentError('It must be a URL such as file:./dir.')
  if (text.startsWith('memory:')) {
    throw new InvalidArgumentError('Worker processes do not share memory.')
  }
  return text
}

function positive(text: string): number {
  const number = /^\d+(\.\d+)?$/.test(text) ? Number(text) : NaN
  if (number > 0) return number
  throw new InvalidArgumentError('It must be a number greater than 0.')
}

function date(text: string): string {
  if (weekdayOf(text) !== undefined) return text
  throw new InvalidArgumentError('It must be a date such as 20160704.')
}

/** Returns an option for a duration, 30 seconds by default. @param least the minimum, in milliseconds. */
function lasting(name: string, description: string, least: number): Option {
  return new Option(`${name} <duration>`, description).default(30_000, '30s').argParser(text => {
    const match = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text)
    const milliseconds = match ? Number(match[1]) * UNITS[match[2]!]! : NaN
    if (milliseconds >= least && milliseconds <= LONGEST) return milliseconds
    throw new InvalidArgumentError(
      `It must be a duration such as 10ms, 5s or 2m, from ${least} ms to ${LONGEST} ms.`,
    )
  })
}
