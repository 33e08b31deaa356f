import { writeFileSync } from 'node:fs'
import { Option, type Command } from 'commander'
import { InvalidArgumentError } from 'signalbox'
import { applicationCommand, exitStatusOf, integer } from '../command-line.js'
import { checkWritable } from '../output-file.js'
import { check, type Verdict } from './check/check.js'
import { readHistory } from './history-file.js'
import { picture } from './picture.js'
import type { PeerName } from './protocol.js'
import { reportOf } from './report.js'
import { chaos } from './run.js'
import type { Settings } from './settings.js'
import { faultLine, textReport, textVerdict } from './text-report.js'

/** Exit statuses. */
const EXIT = { fine: 0, broken: 1, usage: 2, failed: 69 } as const

const EXIT_TEXT = `
Exit status:
  0   every promise was kept
  1   one was broken
  2   the command line can't be used, or the file to check is not a history; nothing was done
  69  the engine can't be reached, or a client or its server does not start`

/** Packages that each peer needs besides this one. */
const PACKAGES: Readonly<Record<PeerName, readonly NeededPackage[]>> = {
  redlock: [
    { name: 'redlock', version: '5.0.0-beta.2', exports: ['ExecutionError', 'ResourceLockedError'] },
    { name: 'ioredis' },
  ],
  'redis-semaphore': [{ name: 'redis-semaphore' }, { name: 'ioredis' }],
}

interface NeededPackage {
  readonly name: string
  /** The version to install, if the newest one cannot be used. */
  readonly version?: string
  /** Exports that only usable versions have. */
  readonly exports?: readonly string[]
}

interface Parsed extends Settings {
  readonly check?: string
  readonly json?: string
  readonly history?: string
  readonly picture?: string
  readonly verbose?: true
}

const DEFAULT_ENGINE = 'file:./.signalbox/chaos'

/** Returns the command line of the fault harness. */
export function chaosCommand(): Command {
  const command = applicationCommand('signalbox chaos')
    .description(
      'Client processes count under locks and move money in transactions, while they are killed and stopped, their ' +
        'clocks jump, their network is disturbed, and the server is restarted. Then the history is checked against the ' +
        'promises.',
    )
    .addOption(
      new Option('--engine <url>', 'where locks and values are')
        // With Commander's `env()`, a set variable would conflict with --check.
        .default(process.env.SIGNALBOX_URL ?? DEFAULT_ENGINE, `SIGNALBOX_URL, or ${DEFAULT_ENGINE}`),
    )
    .addOption(
      new Option('--peer <name>', 'whose locks are used instead, on Redis').choices(Object.keys(PACKAGES)),
    )
    .option(
      '--seed <number>',
      'draws the kinds and lengths of faults; a holder that one is to meet differs from run to run',
      integer(0, 2 ** 31),
      1,
    )
    .option('--faults <number>', 'end after this number of faults', integer(0, 100_000), 20)
    .option('--seconds <number>', 'end after this time', integer(1, 86_400), 60)
    .option('--processes <number>', 'how many clients', integer(2, 64), 4)
    .option('--lease <ms>', 'the lease of each lock', integer(500, 60_000), 1000)
    .option('--server <command>', 'starts the server, in the foreground; it is killed and stopped, too')
    .option(
      '--proxy-port <port>',
      'the port that a Hazelcast member announces to its clients',
      integer(1, 65_535),
    )
    .option('--verbose', 'report each fault when it is over, on standard error')
    .option('--json <file>', 'write the figures there')
    .option(
      '--history <file>',
      'write there all that was seen: each request, write, transfer, call and fault',
    )
    .option(
      '--picture <file>',
      'draw grants and faults over time, in SVG; takes the packages vega and vega-lite',
    )
    .addHelpText('after', EXIT_TEXT)
  const others = command.options.map(option => option.attributeName())
  const checkOption = new Option(
    '--check <file>',
    'check again what --history wrote there, and do nothing else; takes no other option',
  )
  return command.addOption(checkOption.conflicts(others))
}

/** Executes the command line of the fault harness and returns its exit status. */
export async function runChaos(args: readonly string[]): Promise<number> {
  return exitStatusOf(async () => {
    const { check: recorded, ...parsed } = chaosCommand().parse(args, { from: 'user' }).opts<Parsed>()
    return recorded === undefined ? run(parsed) : checkAgain(recorded)
  }, EXIT)
}

/** Checks a recorded history against the promises. */
function checkAgain(path: string): number {
  const verdict = check(readHistory(path))
  process.stdout.write(textVerdict(verdict))
  return statusOf(verdict)
}

function statusOf({ findings }: Verdict): number {
  return findings.length === 0 ? EXIT.fine : EXIT.broken
}

async function run({
  json,
  history,
  picture: drawing,
  verbose,
  ...settings
}: Omit<Parsed, 'check'>): Promise<number> {
  await refuseWhatCannotBe(settings, drawing !== undefined)
  const files = [json, history, drawing].filter(file => file !== undefined)
  if (new Set(files).size < files.length)
    throw new InvalidArgumentError('--json, --history and --picture take a file each')
  files.forEach(checkWritable)
  const interrupt = new AbortController()
  const stop = (): void => interrupt.abort()
  process.once('SIGINT', stop).once('SIGTERM', stop)
  const outcome = await chaos(settings, interrupt.signal, fault => {
    if (verbose) process.stderr.write(faultLine(fault))
  })
  const report = reportOf(settings, outcome, check(outcome.history))
  process.stdout.write(textReport(report))
  if (json !== undefined) writeFileSync(json, `${JSON.stringify(report, undefined, 2)}\n`)
  if (history !== undefined) writeFileSync(history, `${JSON.stringify(outcome.history)}\n`)
  if (drawing !== undefined) writeFileSync(drawing, await picture(outcome.history))
  return statusOf(report)
}

/**
 * @throws InvalidArgumentError if the options contradict each other, processes cannot share the engine, or a package is
 *   missing.
 */
async function refuseWhatCannotBe({ engine, peer, server }: Settings, draws: boolean): Promise<void> {
  if (engine.startsWith('memory:'))
    throw new InvalidArgumentError(
      'memory: lives inside one process, which has no others to be killed; it is tested by simulation instead',
    )
  if (peer !== undefined && !engine.startsWith('redis://'))
    throw new InvalidArgumentError(`--peer ${peer} needs --engine redis://HOST:PORT, not ${engine}`)
  if (server !== undefined && engine.startsWith('file:'))
    throw new InvalidArgumentError('--server: files have no server')
  if (peer !== undefined) await needs(`--peer ${peer}`, PACKAGES[peer])
  if (draws) await needs('--picture', [{ name: 'vega' }, { name: 'vega-lite' }])
}

async function needs(option: string, packages: readonly NeededPackage[]): Promise<void> {
  const found = await Promise.all(packages.map(isUsable))
  if (!found.includes(false)) return
  const names = packages.map(({ name, version }) => (version === undefined ? name : `${name}@${version}`))
  throw new InvalidArgumentError(`${option} takes packages: npm install ${names.join(' ')}`)
}

/** Whether a usable version of the package is installed. */
async function isUsable({ name, exports = [] }: NeededPackage): Promise<boolean> {
  try {
    const found = (await import(name)) as object
    return exports.every(each => each in found)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
    return false
  }
}
