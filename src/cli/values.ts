import type { Command } from 'commander'
import { keyOf, versionOf } from './arguments.js'
import { type EngineOptions, engineOption, withBox } from './engine.js'
import { EXIT } from './exit-status.js'
import { CommandError } from './failure.js'
import { printableJson } from '../base/printable.js'
import type { Terminal } from './terminal.js'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'

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

/** Parses a value of the command line: JSON, or `-` for JSON on standard input. @throws CommandError */
async function readValue(argument: string, stdin: Readable): Promise<unknown> {
  const json = argument === '-' ? await text(stdin) : argument
  try {
    return JSON.parse(json) as unknown
  } catch {
    throw new CommandError(
      `invalid JSON: the value must be JSON, such as 42, '"text"' or '{"a":1}'`,
      EXIT.usage,
    )
  }
}
