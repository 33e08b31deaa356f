import type { Command } from 'commander'
import { keyOf } from './arguments.js'
import { engineOption, withBox } from './engine.js'
import { givenValue } from './given-value.js'
import { printableJson } from './printable.js'
import type { Terminal } from './terminal.js'

interface PutOptions {
  engine?: string
  json?: boolean
}

/** Adds `signalbox put`. */
export function addPut(program: Command, { stdin, stdout }: Pick<Terminal, 'stdin' | 'stdout'>): void {
  program
    .command('put')
    .description('write a value into a store, whatever is there, and show its version')
    .argument('<store>', 'the name of the store', keyOf)
    .argument('<key>', 'the key', keyOf)
    .argument('<value>', 'JSON, or - for what stands on standard input')
    .addOption(engineOption())
    .option('--json', 'a line of JSON')
    .action(async (store: string, key: string, text: string, { engine, json }: PutOptions) => {
      const value = await givenValue(text, stdin)
      const version = await withBox(engine, box => box.store(store).put(key, value), { makes: true })
      stdout.write(json ? `${printableJson({ store, key, version })}\n` : `${version}\n`)
    })
}
