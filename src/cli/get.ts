import type { Command } from 'commander'
import { keyOf } from './arguments.js'
import { engineOption, withBox, type EngineOptions } from './engine.js'
import { EXIT } from './exit-status.js'
import { CommandError } from './failure.js'
import { printableJson } from '../base/printable.js'
import type { Terminal } from './terminal.js'

export function addGet(program: Command, stdout: Terminal['stdout']): void {
  program
    .command('get')
    .description('print a value of a store as JSON')
    .argument('<store>', 'the name of the store', keyOf)
    .argument('<key>', 'the key', keyOf)
    .addOption(engineOption())
    .option('--json', 'print a line of JSON with the value and its version')
    .action(async (store: string, key: string, { engine, json }: EngineOptions) => {
      const entry = await withBox(engine, box => box.store(store).get(key))
      if (!entry) throw new CommandError(`${store} has no key ${key}`, EXIT.failed)
      const { value, version } = entry
      stdout.write(`${printableJson(json ? { store, key, version, value } : value)}\n`)
    })
}
