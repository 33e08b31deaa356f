import { Option, type Command } from 'commander'
import { systemClock } from '../clock.js'
import { duration, keyOf } from './arguments.js'
import { engineOption, withBox } from './engine.js'
import { Interrupt } from './interrupt.js'
import { printableJson } from './printable.js'
import type { Terminal } from './terminal.js'

interface WaitOptions {
  engine?: string
  wait?: number
  json?: boolean
}

/** Adds `signalbox wait`. */
export function addWait(program: Command, stdout: Terminal['stdout']): void {
  program
    .command('wait')
    .description('wait until a key is free, in its queue: behind all present waiters, and before later ones')
    .argument('<key>', 'the key; that of an election is election:NAME', keyOf)
    .addOption(
      new Option('--wait <time>', 'how long to wait (default: as long as it takes)').argParser(duration),
    )
    .addOption(engineOption())
    .option('--json', 'a line of JSON when it is free: the key, and how many milliseconds that took')
    .action(async (key: string, { engine, wait, json }: WaitOptions) => {
      const started = systemClock.now()
      await withBox(engine, async box => {
        using interrupt = new Interrupt()
        // Shared, so that several of these commands don't block each other.
        await interrupt.during(signal =>
          box.lock({ key, mode: 'shared' }).run(() => undefined, { wait, signal }),
        )
      })
      if (json) stdout.write(`${printableJson({ key, waited: Math.round(systemClock.now() - started) })}\n`)
    })
}
