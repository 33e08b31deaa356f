import type { Command } from 'commander'
import type { Party } from '../index.js'
import { cyclesOf, waitsOf, type Wait } from '../reports/index.js'
import { columns } from './columns.js'
import { engineOption, withBox, type EngineOptions } from './engine.js'
import { reportsOf } from './ls.js'
import { printable, printableJson } from '../base/printable.js'
import { shortDuration } from '../base/duration.js'
import type { Terminal } from './terminal.js'

export function addGraph(program: Command, stdout: Terminal['stdout']): void {
  program
    .command('graph')
    .description('show which waiter waits for which session, and cycles among them')
    .argument('[prefix]', 'only keys that start with this')
    .addOption(engineOption())
    .option('--json', 'one JSON object instead of a table')
    .action(async (prefix: string | undefined, { engine, json }: EngineOptions) => {
      const waits = waitsOf(await withBox(engine, box => reportsOf(box, prefix)))
      stdout.write(json ? graphJson(waits) : graphTable(waits))
    })
}

const HEAD = ['WAITER', 'HOST', 'PID', 'AGE', 'KEY', 'STATE', 'BLOCKER', 'HOST', 'PID', 'AGE']
const RIGHT_ALIGNED = [2, 3, 8, 9]

/** Renders a line for each pair of a waiter and a session that it waits for, and one for each cycle. */
export function graphTable(waits: readonly Wait<Party>[]): string {
  const lines = waits.map(({ key, waiter, blocker, holds }) => [
    ...who(waiter),
    key,
    holds ? 'held by' : 'behind',
    ...who(blocker),
  ])
  const cycles = cyclesOf(waits).map(
    cycle => `cycle, possibly a deadlock: ${printable([...cycle, cycle[0]!].join(' -> '))}\n`,
  )
  return columns([HEAD, ...lines], RIGHT_ALIGNED) + cycles.join('')
}

function who({ label, session, host, pid, age }: Party): string[] {
  return [label ?? session, host, String(pid), shortDuration(age)]
}

function graphJson(waits: readonly Wait<Party>[]): string {
  const plain = waits.map(({ key, waiter, blocker, holds }) => ({
    key,
    waiter: node(waiter),
    blocker: node(blocker),
    holds,
  }))
  return `${printableJson({ waits: plain, cycles: cyclesOf(waits) })}\n`
}

function node({ session, host, pid, label, age }: Party): object {
  return { session, host, pid, label, age: Math.round(age) }
}
