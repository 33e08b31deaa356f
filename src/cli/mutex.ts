import type { Command } from 'commander'

/** Adds `signalbox mutex`: the demo reads its own command line and writes where it always does. */
export function addMutex(program: Command): void {
  program
    .command('mutex')
    .description('show what a mutex does, and what goes wrong without one; see `signalbox mutex --help`')
    .argument('[options...]')
    .allowUnknownOption()
    .passThroughOptions()
    .helpOption(false)
    .action(async (args: string[]) => {
      const { mutex } = await import('../../apps/mutex/command.js')
      // It has a status of its own, and everything is closed by then.
      process.exit(await mutex(args))
    })
}
