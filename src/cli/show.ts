import type { Command } from 'commander'
import { engineOption, withBox } from './engine.js'
import { EXIT } from './exit-status.js'
import { CommandError } from './failure.js'
import { jsonLine, reportsOf, table } from './ls.js'
import type { Terminal } from './terminal.js'

interface ShowOptions {
  engine?: string
  json?: boolean
}

/** Adds `signalbox show`. */
export function addShow(program: Command, stdout: Terminal['stdout']): void {
  program
    .command('show')
    .description('show the holders and waiters of one key')
    .argument('<key>', 'the key')
    .addOption(engineOption())
    .option('--json', 'a line of JSON instead of a table')
    .action(async (key: string, { engine, json }: ShowOptions) => {
      const report = await withBox(engine, async box =>
        (await reportsOf(box, key)).find(other => other.key === key),
      )
      if (!report) throw new CommandError(`${key} has no holder and no waiter`, EXIT.failed)
      stdout.write(json ? jsonLine(report) : table([report]))
    })
}
