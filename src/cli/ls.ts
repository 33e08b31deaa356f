import type { Command } from 'commander'
import type { Box, Claim, InspectOptions, LimiterReport, LockReport, Party } from '../index.js'
import { columns } from './columns.js'
import { printableJson } from '../base/printable.js'
import { type EngineOptions, engineOption, withBox } from './engine.js'
import { shortDuration } from '../base/duration.js'
import type { Terminal } from './terminal.js'
import { keyOf } from './arguments.js'
import { EXIT } from './exit-status.js'
import { CommandError } from './failure.js'

export function addLs(program: Command, stdout: Terminal['stdout']): void {
  program
    .command('ls')
    .description('list the holders and waiters of all keys, and the limiters in use')
    .argument('[prefix]', 'only keys and limiters that start with this')
    .addOption(engineOption())
    .option('--json', 'print a line of JSON for each key and each limiter')
    .action(async (prefix: string | undefined, { engine, json }: EngineOptions) => {
      const [reports, limiters] = await withBox(engine, box =>
        Promise.all([reportsOf(box, prefix), limitersOf(box, prefix)]),
      )
      stdout.write(json ? reports.map(jsonLine).join('') : table(reports))
      stdout.write(json ? limiters.map(limiterLine).join('') : limiterTable(limiters).replace(/^(?=.)/, '\n'))
    })
}

/** Collects the keys in use that start with `prefix`, at one moment. @throws as `Box.inspect` */
export async function reportsOf(box: Box, prefix?: string, options?: InspectOptions): Promise<LockReport[]> {
  const all: LockReport[] = []
  for await (const report of box.inspect(prefix, options)) all.push(report)
  return all
}

const HEAD = ['KEY', 'STATE', 'CLAIM', 'TOKEN', 'AGE', 'LEASE', 'LABEL', 'HOST', 'PID', 'SESSION']
/** Columns of numbers and durations. */
const RIGHT_ALIGNED = [3, 4, 5, 8]

/** Renders holders and waiters as a table; those of a key in the order in which they are served. */
export function table(reports: readonly LockReport[]): string {
  const lines = reports.flatMap(({ key, holders, waiters }) => [
    ...holders.map(party => line(key, 'held', party)),
    ...waiters.map((party, index) => line(key, `waits ${index + 1}`, party)),
  ])
  return columns([HEAD, ...lines], RIGHT_ALIGNED)
}

function line(key: string, state: string, party: Party): string[] {
  const { claim, token, age, expiresIn, label = '', host, pid, session } = party
  return [
    key,
    state,
    claimText(claim),
    token === undefined ? '' : String(token),
    shortDuration(age),
    shortDuration(expiresIn),
    label,
    host,
    String(pid),
    session,
  ]
}

function claimText(claim: Claim): string {
  return claim.mode === 'permits' ? `${claim.permits} of ${claim.max}` : claim.mode
}

/** Renders a report as JSON. Tokens are text, because they exceed the safe integers of JSON parsers. */
export function jsonLine({ key, holders, waiters }: LockReport): string {
  return `${printableJson({ key, holders: holders.map(plain), waiters: waiters.map(plain) })}\n`
}

function plain({ token, age, expiresIn, ...rest }: Party): object {
  return {
    ...rest,
    ...(token !== undefined && { token: String(token) }),
    age: Math.round(age),
    expiresIn: Math.round(expiresIn),
  }
}

export function addShow(program: Command, stdout: Terminal['stdout']): void {
  program
    .command('show')
    .description('show the holders and waiters of a key, and the limiter of that name')
    .argument('<key>', 'the key, or the name of a limiter', keyOf)
    .addOption(engineOption())
    .option('--json', 'print lines of JSON')
    .action(async (key: string, { engine, json }: EngineOptions) => {
      const [locks, named] = await withBox(engine, box =>
        Promise.all([reportsOf(box, key), limitersOf(box, key)]),
      )
      const report = locks.find(other => other.key === key)
      const limiters = named.filter(({ name }) => name === key)
      if (!report && limiters.length === 0)
        throw new CommandError(
          `${key} has no holder and no waiter, and no limiter of that name is in use`,
          EXIT.failed,
        )
      if (report) stdout.write(json ? jsonLine(report) : table([report]))
      stdout.write(json ? limiters.map(limiterLine).join('') : limiterTable(limiters))
    })
}

/** Collects the limiters whose names start with `prefix`. @throws as `Box.limiters` */
async function limitersOf(box: Box, prefix?: string): Promise<LimiterReport[]> {
  const all: LimiterReport[] = []
  for await (const report of box.limiters(prefix)) all.push(report)
  return all
}

const LIMITER_HEAD = ['LIMITER', 'KEY', 'LIMIT', 'USED', 'FREE', 'RESET', 'PAUSED', 'WAITING']
/** Columns of numbers and durations. */
const LIMITER_RIGHT_ALIGNED = [3, 4, 5, 6]

/** Renders limiters as a table, with a line for each limit; empty without limiters. */
export function limiterTable(reports: readonly LimiterReport[]): string {
  if (reports.length === 0) return ''
  const lines = reports.flatMap(({ name, key = '', limits, pausedFor, waiting }) => {
    const named = [name, key]
    const rest = [pausedFor > 0 ? shortDuration(pausedFor) : '', waiting.join(' ')]
    if (limits.length === 0) return [[...named, '', '', '', '', ...rest]]
    return limits.map(({ limit, per, window, timeZone, unit, used, remaining, resetIn }) => {
      const kind = window === 'sliding' ? '' : ` ${window}${timeZone === '' ? '' : ` ${timeZone}`}`
      const counts = [String(used), String(remaining), resetIn > 0 ? shortDuration(resetIn) : '']
      const units = unit === undefined ? '' : ` ${unit}`
      return [...named, `${limit}${units} per ${shortDuration(per)}${kind}`, ...counts, ...rest]
    })
  })
  return columns([LIMITER_HEAD, ...lines], LIMITER_RIGHT_ALIGNED)
}

/** Renders a limiter as a line of JSON. Durations are whole milliseconds. */
function limiterLine({ name: limiter, key, limits, pausedFor, waiting }: LimiterReport): string {
  const whole = limits.map(limit => ({ ...limit, resetIn: Math.round(limit.resetIn) }))
  return `${printableJson({ limiter, key, limits: whole, pausedFor: Math.round(pausedFor), waiting })}\n`
}
