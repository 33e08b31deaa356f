import { Option, type Command } from 'commander'
import { duration } from './arguments.js'
import { engineOption, withBox } from './engine.js'
import { Interrupt } from './interrupt.js'

interface WaitOptions {
  engine?: string
  wait?: number
}

/** Adds `signalbox wait`. */
export function addWait(program: Command): void {
  program
    .command('wait')
    .description(
      'wait until a key is free, in its queue: behind all who wait for it now, and before those who come later',
    )
    .argument('<key>', 'the key; that of an election is election:NAME')
    .addOption(
      new Option('--wait <time>', 'how long to wait (default: as long as it takes)').argParser(duration),
    )
    .addOption(engineOption())
    .action(async (key: string, { engine, wait }: WaitOptions) => {
      await withBox(engine, async box => {
        using interrupt = new Interrupt()
        // Shared, so that those who wait likewise are not in each other's way.
        await interrupt.during(signal => box.readWriteLock(key).read.run(() => undefined, { wait, signal }))
      })
    })
}
