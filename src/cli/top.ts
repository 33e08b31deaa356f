import { Option, type Command } from 'commander'
import { systemClock } from '../base/clock.js'
import type { LockReport, Party } from '../index.js'
import { countOf, duration } from './arguments.js'
import { columns } from './columns.js'
import { engineOption, withBox, type EngineOptions } from './engine.js'
import { Interrupt } from './interrupt.js'
import { jsonLine, reportsOf } from './ls.js'
import { shortDuration } from '../base/duration.js'
import { pause } from '../base/pause.js'
import type { Output, Terminal } from './terminal.js'

interface TopOptions extends EngineOptions {
  every: number
  count?: number
}

const CLEAR = '\u001b[H\u001b[2J'
const BOLD = '\u001b[1m'
const PLAIN = '\u001b[0m'

export function addTop(program: Command, { stdout, unread }: Terminal): void {
  program
    .command('top')
    .description(
      'watch holders and waiters, the keys with most waiters first. Without a terminal it prints once',
    )
    .argument('[prefix]', 'only keys that start with this')
    .addOption(engineOption())
    .addOption(new Option('--every <time>', 'refresh interval').argParser(duration).default(1000, '1s'))
    .addOption(new Option('--count <number>', 'number of refreshes').argParser(countOf))
    .option('--json', 'print a line of JSON for each key')
    .action(async (prefix: string | undefined, { engine, json, every, count }: TopOptions) => {
      const isScreen = stdout.isTTY === true && process.env['TERM'] !== 'dumb' && !json
      const most = count ?? (isScreen ? Infinity : 1)
      await withBox(engine, async box => {
        using interrupt = new Interrupt()
        const over = AbortSignal.any([interrupt.signal, unread])
        for (let frame = 1; !over.aborted; frame++) {
          const reports = await reportsOf(box, prefix)
          if (json) stdout.write(reports.map(jsonLine).join(''))
          else if (isScreen) stdout.write(screen(reports, stdout))
          else stdout.write(`${frame > 1 ? '\n' : ''}${overview(reports).join('')}`)
          if (frame >= most) return
          await pause(every, systemClock, over)
        }
      })
    })
}

function screen(reports: readonly LockReport[], { columns: width = 80, rows = 24 }: Output): string {
  const lines = overview(reports)
    .slice(0, rows - 1)
    .map(line => `${line.trimEnd().slice(0, width)}\n`)
  if ((process.env['NO_COLOR'] ?? '') === '' && lines[1] !== undefined)
    lines[1] = `${BOLD}${lines[1].trimEnd()}${PLAIN}\n`
  return CLEAR + lines.join('')
}

const HEAD = ['KEY', 'WAITING', 'HOLDER', 'HOST', 'PID', 'AGE', 'LEASE', 'NEXT', 'HOST', 'PID', 'AGE']
const RIGHT_ALIGNED = [1, 4, 5, 6, 9, 10]

/**
 * Renders the totals, then a line for each key with its first holder and first waiter; the keys with most waiters
 * first.
 */
export function overview(reports: readonly LockReport[]): string[] {
  const sorted = [...reports].sort((a, b) => b.waiters.length - a.waiters.length || (a.key < b.key ? -1 : 1))
  const holders = reports.reduce((sum, report) => sum + report.holders.length, 0)
  const waiters = reports.reduce((sum, report) => sum + report.waiters.length, 0)
  const rows = sorted.map(report => [
    report.key,
    String(report.waiters.length),
    ...who(report.holders[0], report.holders.length - 1),
    report.holders[0] ? shortDuration(report.holders[0].expiresIn) : '',
    ...who(report.waiters[0], 0),
  ])
  const table = columns([HEAD, ...rows], RIGHT_ALIGNED).match(/.*\n/g) ?? []
  return [`keys in use: ${reports.length}, holders: ${holders}, waiters: ${waiters}\n`, ...table]
}

/** @param others the number of other holders of the key. */
function who(party: Party | undefined, others: number): string[] {
  if (!party) return ['', '', '', '']
  const { label, session, host, pid, age } = party
  const name = label ?? session
  return [others > 0 ? `${name} and ${others} more` : name, host, String(pid), shortDuration(age)]
}
