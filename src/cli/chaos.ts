import type { Command } from 'commander'

/** Adds `signalbox chaos`: the fault harness reads its own command line and writes where it always does. */
export function addChaos(program: Command): void {
  program
    .command('chaos')
    .description(
      'do faults to clients of an engine and check what becomes of the promises; see `signalbox chaos --help`',
    )
    .argument('[options...]')
    .allowUnknownOption()
    .passThroughOptions()
    .helpOption(false)
    .action(async (args: string[]) => {
      const { runChaos } = await import('../../apps/chaos/command.js')
      // It has a status of its own, and everything is closed by then.
      process.exit(await runChaos(args))
    })
}
