import type { Command } from 'commander'

/** A program with a command line of its own that is a subcommand of `signalbox`, too. */
export interface Application {
  readonly name: string
  readonly description: string
  /** What its command line takes, for the completion of shells. */
  readonly command: () => Promise<Command>
  /** Carries out a command line, without the name, and gives its exit status. */
  readonly run: (args: string[]) => Promise<number>
}

/** Adds an application, which reads its own command line and writes where it always does. */
export function addApplication(program: Command, { name, description, run }: Application): void {
  program
    .command(name)
    .description(`${description}; see \`signalbox ${name} --help\``)
    .argument('[options...]')
    .allowUnknownOption()
    .passThroughOptions()
    .helpOption(false)
    .action(async (args: string[]) => {
      // It has a status of its own, and has closed all that it used. Standard input may stay open for ever.
      process.exit(await run(args))
    })
}
