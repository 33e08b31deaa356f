import type { Command } from 'commander'
import { keyOf, versionOf } from './arguments.js'
import { engineOption, withBox } from './engine.js'
import { EXIT } from './exit-status.js'
import { CommandError } from './failure.js'
import { givenValue } from './given-value.js'
import { printableJson } from './printable.js'
import type { Terminal } from './terminal.js'

interface CasOptions {
  engine?: string
  json?: boolean
}

/** Adds `signalbox cas`. */
export function addCas(program: Command, { stdin, stdout }: Pick<Terminal, 'stdin' | 'stdout'>): void {
  program
    .command('cas')
    .description(
      'write a value into a store if it still has a version (compare and set), and show the new one',
    )
    .argument('<store>', 'the name of the store', keyOf)
    .argument('<key>', 'the key', keyOf)
    .argument('<version>', 'the version that get --json showed; 0 for a key that is not there', versionOf)
    .argument('<value>', 'JSON, or - for what stands on standard input')
    .addOption(engineOption())
    .option('--json', 'a line of JSON')
    .action(
      async (store: string, key: string, expected: number, text: string, { engine, json }: CasOptions) => {
        const value = await givenValue(text, stdin)
        const version = await withBox(engine, box => box.store(store).compareAndSet(key, expected, value), {
          makes: true,
        })
        if (version === undefined)
          throw new CommandError(`${key} in ${store} has not version ${expected}`, EXIT.failed)
        stdout.write(json ? `${printableJson({ store, key, version })}\n` : `${version}\n`)
      },
    )
}
