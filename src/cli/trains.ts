import type { Command } from 'commander'

/** Adds `signalbox trains`: the train tracker reads its own command line and writes where it always does. */
export function addTrains(program: Command): void {
  program
    .command('trains')
    .description('drive the trains of a timetable through shared locations; see `signalbox trains --help`')
    .argument('[options...]')
    .allowUnknownOption()
    .passThroughOptions()
    .helpOption(false)
    .action(async (args: string[]) => {
      const { trains } = await import('../../apps/trains/command.js')
      // Standard input may stay open for ever, and nothing else is left to wait for.
      process.exit(await trains(args))
    })
}
