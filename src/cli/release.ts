import { InvalidArgumentError, type Command } from 'commander'
import { keyOf } from './arguments.js'
import { engineOption, withBox, type EngineOptions } from './engine.js'
import { EXIT } from './exit-status.js'
import { CommandError } from './failure.js'
import { printable, printableJson } from '../base/printable.js'
import type { Terminal } from './terminal.js'

interface ReleaseOptions extends EngineOptions {
  token: bigint
}

export function addRelease(program: Command, stdout: Terminal['stdout']): void {
  program
    .command('release')
    .description('release a lock by force: its holder is notified that it lost the lock')
    .argument('<key>', 'one of the keys of the grant; all of its keys are released', keyOf)
    .requiredOption('--token <number>', 'the token of the grant, as `ls` shows it', token)
    .addOption(engineOption())
    .option('--json', 'print a line of JSON')
    .action(async (key: string, { engine, json, token }: ReleaseOptions) => {
      const released = await withBox(engine, box => box.forceRelease(key, token))
      if (!released) throw new CommandError(`${key} has no holder with token ${token}`, EXIT.failed)
      stdout.write(
        json ? `${printableJson({ key, token: String(token) })}\n` : `released ${printable(key)}\n`,
      )
    })
}

/** Tokens fit a signed 64-bit column. */
const MAX_TOKEN = 2n ** 63n - 1n

function token(text: string): bigint {
  const number = /^\d{1,19}$/.test(text) ? BigInt(text) : -1n
  if (number < 0n || number > MAX_TOKEN) {
    throw new InvalidArgumentError('It must be a token such as 1773761422222221312.')
  }
  return number
}
