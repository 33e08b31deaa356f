import type { Command } from 'commander'
import { keyOf } from './arguments.js'
import { engineOption, withBox, type EngineOptions } from './engine.js'
import { readValue } from './read-value.js'
import { printableJson } from '../base/printable.js'
import type { Terminal } from './terminal.js'

export function addPut(program: Command, { stdin, stdout }: Pick<Terminal, 'stdin' | 'stdout'>): void {
  program
    .command('put')
    .description('write a value into a store unconditionally, and print its version')
    .argument('<store>', 'the name of the store', keyOf)
    .argument('<key>', 'the key', keyOf)
    .argument('<value>', 'JSON, or - to read it from standard input')
    .addOption(engineOption())
    .option('--json', 'print a line of JSON')
    .action(async (store: string, key: string, text: string, { engine, json }: EngineOptions) => {
      const value = await readValue(text, stdin)
      const version = await withBox(engine, box => box.store(store).put(key, value), { creates: true })
      stdout.write(json ? `${printableJson({ store, key, version })}\n` : `${version}\n`)
    })
}
