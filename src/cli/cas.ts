import type { Command } from 'commander'
import { keyOf, versionOf } from './arguments.js'
import { engineOption, withBox, type EngineOptions } from './engine.js'
import { EXIT } from './exit-status.js'
import { CommandError } from './failure.js'
import { readValue } from './read-value.js'
import { printableJson } from '../base/printable.js'
import type { Terminal } from './terminal.js'

export function addCas(program: Command, { stdin, stdout }: Pick<Terminal, 'stdin' | 'stdout'>): void {
  program
    .command('cas')
    .description(
      'write a value into a store if its version is still the given one (compare and set), and print the new version',
    )
    .argument('<store>', 'the name of the store', keyOf)
    .argument('<key>', 'the key', keyOf)
    .argument('<version>', 'the version that get --json showed; 0 for an absent key', versionOf)
    .argument('<value>', 'JSON, or - to read it from standard input')
    .addOption(engineOption())
    .option('--json', 'print a line of JSON')
    .action(
      async (store: string, key: string, expected: number, text: string, { engine, json }: EngineOptions) => {
        const value = await readValue(text, stdin)
        const version = await withBox(engine, box => box.store(store).compareAndSet(key, expected, value), {
          creates: true,
        })
        if (version === undefined)
          throw new CommandError(`${key} in ${store} does not have version ${expected}`, EXIT.failed)
        stdout.write(json ? `${printableJson({ store, key, version })}\n` : `${version}\n`)
      },
    )
}
