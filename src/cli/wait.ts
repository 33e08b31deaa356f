import { Option, type Command } from 'commander'
import { systemClock } from '../base/clock.js'
import { duration, keyOf } from './arguments.js'
import { engineOption, withBox, type EngineOptions } from './engine.js'
import { Interrupt } from './interrupt.js'
import { printableJson } from '../base/printable.js'
import type { Terminal } from './terminal.js'

interface WaitOptions extends EngineOptions {
  wait?: number
}

export function addWait(program: Command, stdout: Terminal['stdout']): void {
  program
    .command('wait')
    .description(
      'wait in the queue of a key until it is free: behind all present waiters, and ahead of later ones',
    )
    .argument('<key>', 'the key; that of an election is election:NAME', keyOf)
    .addOption(new Option('--wait <time>', 'how long to wait (default: no limit)').argParser(duration))
    .addOption(engineOption())
    .option('--json', 'print a line of JSON when it is free, with the key and the wait in milliseconds')
    .action(async (key: string, { engine, wait, json }: WaitOptions) => {
      const started = systemClock.now()
      await withBox(engine, async box => {
        using interrupt = new Interrupt()
        // Shared, so that several such commands don't block each other.
        await interrupt.during(signal =>
          box.lock({ key, mode: 'shared' }).run(() => undefined, { wait, signal }),
        )
      })
      if (json) stdout.write(`${printableJson({ key, waited: Math.round(systemClock.now() - started) })}\n`)
    })
}
