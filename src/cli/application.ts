import type { Command } from 'commander'

/** A program with its own command line that is also a subcommand of `signalbox`. */
export interface Application {
  readonly name: string
  readonly description: string
  /** Its options, for shell completion. */
  readonly command: () => Promise<Command>
  /** Runs a command line, without the name, and returns its exit status. */
  readonly run: (args: string[]) => Promise<number>
}

/** Adds an application, which parses its own command line and writes to the process's streams. */
export function addApplication(program: Command, { name, description, run }: Application): void {
  program
    .command(name)
    .description(`${description}; see \`signalbox ${name} --help\``)
    .argument('[options...]')
    .allowUnknownOption()
    .passThroughOptions()
    .helpOption(false)
    .action(async (args: string[]) => {
      // It has closed everything that it used, but standard input may stay open forever.
      process.exit(await run(args))
    })
}
