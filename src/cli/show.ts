import type { Command } from 'commander'
import { keyOf } from './arguments.js'
import { engineOption, withBox, type EngineOptions } from './engine.js'
import { EXIT } from './exit-status.js'
import { CommandError } from './failure.js'
import { limiterLine, limitersOf, limiterTable } from './limiters.js'
import { jsonLine, reportsOf, table } from './ls.js'
import type { Terminal } from './terminal.js'

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
