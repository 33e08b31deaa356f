import type { Command } from 'commander'
import type { Box, Claim, InspectOptions, LockReport, Party } from '../index.js'
import { columns } from './columns.js'
import { printableJson } from '../base/printable.js'
import { engineOption, withBox, type EngineOptions } from './engine.js'
import { limiterLine, limitersOf, limiterTable } from './limiters.js'
import { shortDuration } from '../base/duration.js'
import type { Terminal } from './terminal.js'

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

/** Renders a claim. */
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
