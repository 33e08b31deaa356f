import type { Command } from 'commander'
import { keyOf } from './arguments.js'
import { engineOption, withBox, type EngineOptions } from './engine.js'
import { EXIT } from './exit-status.js'
import { CommandError } from './failure.js'
import { printable, printableJson } from '../base/printable.js'
import type { Terminal } from './terminal.js'

export function addResume(program: Command, stdout: Terminal['stdout']): void {
  program
    .command('resume')
    .description('end the pause of a limiter and of all its keys, or of one key, in all processes')
    .argument('<name>', 'the name of the limiter, as `ls` shows it', keyOf)
    .argument('[key]', 'only this key', keyOf)
    .addOption(engineOption())
    .option('--json', 'print a line of JSON')
    .action(async (name: string, key: string | undefined, { engine, json }: EngineOptions) => {
      const resumed = await withBox(engine, box => box.resumeLimiter(name, key))
      const what = key === undefined ? `limiter ${name}` : `key ${key} of limiter ${name}`
      if (resumed === 0) throw new CommandError(`${what} is not paused`, EXIT.failed)
      stdout.write(
        json ? `${printableJson({ limiter: name, key, resumed })}\n` : `resumed ${printable(what)}\n`,
      )
    })
}
